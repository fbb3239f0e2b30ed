"""The catalogue files: made from the table, in the package, served with the service's address, valid."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import openapi_spec_validator
import pytest
import yaml

from runmemory_core.model import HOSTED_URL, RELEASE
from runmemory_core.operations import TOOLS
from runmemory_core.operations.agents import INSTRUCTIONS
from runmemory_core.service import catalogue
from tests.service.serving import Service

FOLDER = Path(catalogue.__file__).parent / "published"
DATA = Path(__file__).parents[1] / "data"


def in_package(name: str) -> str:
    return (FOLDER / name).read_text()


def schema(name: str) -> jsonschema.Draft202012Validator:
    loaded = json.loads((DATA / name).read_text())
    jsonschema.Draft202012Validator.check_schema(loaded)
    return jsonschema.Draft202012Validator(loaded)


def head_of(text: str) -> dict[str, Any]:
    found = re.match(r"---\n(.*?)\n---\n", text, flags=re.DOTALL)
    assert found
    return yaml.safe_load(found[1])


@pytest.mark.parametrize("published", catalogue.FILES, ids=lambda published: published.path)
def test_the_package_carries_what_the_table_makes(published: catalogue.Published) -> None:
    assert in_package(published.file) == published.text(HOSTED_URL), "run `make format`"


def test_the_release_is_that_of_the_package() -> None:
    project = tomllib.loads((DATA.parents[1] / "pyproject.toml").read_text())["project"]
    assert project["version"] == RELEASE


def test_nothing_else_lies_beside_them() -> None:
    held = {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*") if file.is_file()}
    assert held == {published.file for published in catalogue.FILES}


@pytest.mark.parametrize("published", catalogue.FILES, ids=lambda published: published.path)
def test_a_service_answers_with_its_own_address(service: Service, published: catalogue.Published) -> None:
    answer = service.ask("GET", published.path)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith(published.media_type)
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.body.decode() == published.text(service.url)
    assert HOSTED_URL not in answer.body.decode()


def test_the_head_of_the_skill_is_valid() -> None:
    head = head_of(in_package("run-memory/SKILL.md"))
    schema("skill.schema.json").validate(head)
    assert head["name"] == "run-memory"  # the folder has to have the same name


def test_the_skill_of_a_service_with_a_long_name_is_valid_too() -> None:
    schema("skill.schema.json").validate(head_of(catalogue.skill(f"https://{'a' * 60}.{'b' * 60}.example")))


@pytest.mark.parametrize("name", ["server", "tool"])
def test_an_entry_of_a_catalogue_is_valid(name: str) -> None:
    schema(f"{name}.schema.json").validate(json.loads(in_package(f"{name}.json")))


@pytest.mark.parametrize("name", ["server", "tool"])
def test_the_schema_notices_an_entry_that_is_not(name: str) -> None:
    broken = json.loads(in_package(f"{name}.json")) | {"description": ""}
    with pytest.raises(jsonschema.ValidationError):
        schema(f"{name}.schema.json").validate(broken)


def test_the_packaged_openapi_is_valid() -> None:
    openapi_spec_validator.validate(json.loads(in_package("openapi.json")))


def test_llms_txt_has_its_form() -> None:
    lines = in_package("llms.txt").splitlines()
    assert lines[0] == "# Run Memory"
    assert lines[2].startswith("> ")
    links = [line for line in lines if re.match(r"- \[[^]]+\]\(https://\S+\): .+", line)]
    assert len(links) == len(TOOLS) + 4


@pytest.mark.parametrize("name", ["run-memory/SKILL.md", "llms.txt"])
def test_what_agents_read_has_the_instructions_and_all_tools(name: str) -> None:
    text = in_package(name)
    assert INSTRUCTIONS in text
    assert all(operation.description in text for operation in TOOLS)
    assert "claude mcp add --transport http run-memory https://memory.cloudforbots.com/mcp" in text


def test_the_head_of_the_skill_is_read_as_it_was_meant_whatever_the_address() -> None:
    address = "https://runs.example.com/a: b #c"
    assert head_of(catalogue.skill(address))["compatibility"].endswith(f"HTTP access to {address}.")
