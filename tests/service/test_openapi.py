"""The OpenAPI document is valid and leaves nothing out."""

from __future__ import annotations

import json
from typing import Any

import openapi_spec_validator
import pytest
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

from runmemory_core.errors import BY_CODE
from runmemory_core.operations import OPERATIONS, Operation
from tests.service.serving import Service


@pytest.fixture(scope="module")
def document(service: Service) -> dict[str, Any]:
    return service.ask("GET", "/openapi.json").json


def test_the_document_is_valid_openapi_3_1(document: dict[str, Any]) -> None:
    openapi_spec_validator.validate(document)
    assert document["openapi"].startswith("3.1")


def test_the_validator_notices_a_document_that_is_not(document: dict[str, Any]) -> None:
    broken = json.loads(json.dumps(document))
    broken["components"]["schemas"]["Claim"]["properties"]["run_id"]["default"] = None
    with pytest.raises(OpenAPIValidationError, match="None is not of type"):
        openapi_spec_validator.validate(broken)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda operation: operation.name)
def test_every_operation_is_described(document: dict[str, Any], operation: Operation) -> None:
    described = document["paths"][operation.path]["post"]
    assert described["operationId"] == operation.name
    request = described["requestBody"]["content"]["application/json"]["schema"]
    reply = described["responses"]["200"]["content"]["application/json"]["schema"]
    assert request == {"$ref": f"#/components/schemas/{operation.request.__name__}"}
    assert reply == {"$ref": f"#/components/schemas/{operation.reply.__name__}"}


def test_nothing_but_the_operations_and_what_is_read_is_described(document: dict[str, Any]) -> None:
    others = set(document["paths"]) - {operation.path for operation in OPERATIONS.values()}
    assert others == {"/healthz", "/api/run/{run_id}/state", "/api/keys/free"}


def test_every_status_of_an_error_is_documented_as_a_problem(document: dict[str, Any]) -> None:
    documented = document["paths"]["/api/run/save_checkpoint"]["post"]["responses"]
    assert {str(error.http_status) for error in BY_CODE.values()} <= set(documented)
    refusal = document["components"]["responses"]["Refusal"]["content"]
    assert list(refusal) == ["application/problem+json"]


def test_arguments_have_one_type_each(document: dict[str, Any]) -> None:
    for operation in OPERATIONS.values():
        properties = document["components"]["schemas"][operation.request.__name__].get("properties", {})
        assert all("anyOf" not in shown for shown in properties.values())
