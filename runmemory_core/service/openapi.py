"""The OpenAPI 3.1 document, made from the operation table and the routes' own words."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from runmemory_core.errors import BY_CODE
from runmemory_core.model import RELEASE, SUMMARY
from runmemory_core.operations import OPERATIONS, Operation

_REFERENCE = "#/components/schemas/{model}"

_OF_THE_CALLER = (400, 401, 403, 404, 409, 410, 413, 422, 429)
_OF_THE_SERVICE = (500, 503, 507)
REFUSALS = (*_OF_THE_CALLER, *_OF_THE_SERVICE)
"""Every status a refusal may have."""

_PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "RFC 9457. Compare code, which is stable. Other members are facts to act on.",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "examples": sorted(BY_CODE)},
        "detail": {
            "type": "string",
            "description": "What was refused, the measure, the bound and the way out.",
        },
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "properties": {
                    "pointer": {"type": "string", "description": "JSON pointer into the request."},
                    "detail": {"type": "string"},
                },
            },
        },
    },
}


_QUOTA_HEADERS: dict[str, Any] = {
    "RateLimit-Policy": {
        "description": "With a daily limit: its calls and seconds, as draft-ietf-httpapi-ratelimit-headers-10 has it.",
        "schema": {"type": "string", "examples": ['"day";q=500;w=86400']},
    },
    "RateLimit": {
        "description": "With a daily limit: calls that are left, and seconds until all are back.",
        "schema": {"type": "string", "examples": ['"day";r=499;t=43200']},
    },
}


def document(where: str) -> dict[str, Any]:
    """The whole document of a service with the address ``where``."""
    modes = [(op.request, "validation") for op in OPERATIONS.values()]
    modes += [(op.reply, "serialization") for op in OPERATIONS.values()]
    models, definitions = models_json_schema(modes, ref_template=_REFERENCE)  # pyright: ignore[reportArgumentType]
    schema_of = {model: schema for (model, _), schema in models.items()}
    paths = {op.path: {"post": _operation(op, schema_of)} for op in OPERATIONS.values()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Run Memory",
            "version": RELEASE,
            "summary": SUMMARY,
            "description": "Without an API key every call is a preview: nothing is stored.",
        },
        "servers": [{"url": where}],
        "security": [{}, {"key": []}],
        "paths": paths | _OTHER_PATHS,
        "components": {
            "schemas": definitions.get("$defs", {}) | {"Problem": _PROBLEM},
            "responses": {"Refusal": _refusal()},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "rmk_live_…"}},
        },
    }


def _operation(operation: Operation, schema_of: dict[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.group],
        "summary": operation.description.partition(". ")[0],
        "description": operation.description,
        "requestBody": {"content": _json(schema_of[operation.request])},
        "responses": {
            "200": {
                "description": "The reply.",
                "headers": _QUOTA_HEADERS,
                "content": _json(schema_of[operation.reply]),
            }
        }
        | _refusals(),
    }
    if operation.group == "store":
        described["security"] = [{"key": []}]
    if "idempotency_key" in operation.request.model_fields:
        described["parameters"] = [
            _parameter("Idempotency-Key", "header", "The same as idempotency_key in the body.")
        ]
    return described


def _refusals() -> dict[str, Any]:
    return {str(status): {"$ref": "#/components/responses/Refusal"} for status in REFUSALS}


def _refusal() -> dict[str, Any]:
    return {
        "description": "The call was refused, or failed; nothing of it was kept.",
        "headers": {
            "Retry-After": {"description": "Seconds, with 429 and 503.", "schema": {"type": "integer"}},
            **_QUOTA_HEADERS,
            "WWW-Authenticate": {"description": "Bearer, with 401.", "schema": {"type": "string"}},
        },
        "content": {"application/problem+json": {"schema": {"$ref": _REFERENCE.format(model="Problem")}}},
    }


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _parameter(name: str, place: str, description: str, *, kind: str = "string") -> dict[str, Any]:
    bound = {"minimum": 0} if kind == "integer" else {}
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "description": description,
        "schema": {"type": kind} | bound,
    }


_KEY: dict[str, Any] = {
    "type": "object",
    "required": ["key", "key_id", "plan"],
    "properties": {name: {"type": "string"} for name in ("key", "key_id", "plan")},
}
_OTHER_PATHS: dict[str, Any] = {
    "/api/run/{run_id}/state": {
        "get": {
            "operationId": "read_state",
            "tags": ["run"],
            "summary": "A state of any size, whole or in pieces",
            "description": "Whole as JSON, or with offset or length a piece of its text; the header "
            "Run-Memory-Characters tells how long it is altogether.",
            "parameters": [
                _parameter("run_id", "path", "The run."),
                _parameter("seq", "query", "One kept checkpoint; the latest without it.", kind="integer"),
                _parameter("offset", "query", "Where the piece begins, in characters.", kind="integer"),
                _parameter("length", "query", "How many characters at most.", kind="integer"),
            ],
            "responses": {
                "200": {
                    "description": "The state.",
                    "headers": {
                        "Run-Memory-Seq": {"schema": {"type": "integer"}},
                        "Run-Memory-Characters": {"schema": {"type": "integer"}},
                    },
                    "content": _json({"type": "object"}) | {"text/plain": {"schema": {"type": "string"}}},
                }
            }
            | _refusals(),
        }
    },
    "/api/keys/free": {
        "post": {
            "operationId": "issue_free_key",
            "tags": ["service"],
            "summary": "A free key of the watch plan, at once",
            "description": "For lists and reports with labels: without a key others may share your address. "
            "It takes no arguments, and shows the key this once.",
            "security": [],
            "responses": {"201": {"description": "The key.", "content": _json(_KEY)}} | _refusals(),
        }
    },
    "/healthz": {
        "get": {
            "operationId": "healthz",
            "tags": ["service"],
            "summary": "Whether the service and its store answer",
            "security": [],
            "responses": {"200": {"description": "They do.", "content": _json({"type": "object"})}}
            | _refusals(),
        }
    },
}
