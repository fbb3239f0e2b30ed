"""What agents are shown: schemas that every client keeps whole, annotations, and the words beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from runmemory_core.operations import TOOLS, Operation
from runmemory_core.operations.agents import INSTRUCTIONS, for_agents, tools
from tests.service.messages import REVISIONS, post
from tests.service.serving import Service

SHOWN = {
    "resume": ["run_id", "peek", "seq", "attempt", "start_over", "done_cursor"],
    "save_checkpoint": [
        "run_id",
        "step",
        "state",
        "done",
        "next_step",
        "status",
        "error",
        "attempt",
        "job",
        "idempotency_key",
    ],
    "list_checkpoints": ["run_id", "unfinished", "limit"],
    "weekly_report": [],
    "usage_and_upgrade": [],
}
TYPES = {"string", "integer", "boolean", "object", "array"}


def schemas_in(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from schemas_in(inner)
    if "items" in schema:
        yield from schemas_in(schema["items"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_tools_are_listed_as_they_are_written(service: Service, revision: str) -> None:
    listed = post(service, "tools/list", revision=revision).json["result"]["tools"]
    assert listed == list(tools())


@pytest.mark.parametrize("tool", tools(), ids=lambda tool: tool["name"])
def test_a_schema_has_one_type_each_and_nothing_a_client_narrows(tool: dict[str, Any]) -> None:
    schema = tool["inputSchema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == SHOWN[tool["name"]]
    for part in schemas_in(schema):
        assert part["type"] in TYPES
        assert not {"anyOf", "oneOf", "allOf", "$ref", "$defs", "title", "default", "format"} & part.keys()


def test_a_state_is_any_object() -> None:
    save = next(tool for tool in tools() if tool["name"] == "save_checkpoint")
    state = save["inputSchema"]["properties"]["state"]
    description = state.pop("description") if "description" in (state := dict(state)) else ""
    assert state == {"type": "object", "properties": {}, "additionalProperties": True}
    assert "262,144 bytes" in description


@pytest.mark.parametrize("tool", tools(), ids=lambda tool: tool["name"])
def test_bounds_stand_in_the_description_too(tool: dict[str, Any]) -> None:
    for name, argument in tool["inputSchema"]["properties"].items():
        bounds = {argument[key] for key in ("maxLength", "maxItems") if key in argument}
        for bound in bounds:
            assert f"{bound:,}" in argument["description"], name


@pytest.mark.parametrize("operation", TOOLS, ids=lambda operation: operation.name)
def test_annotations_say_what_a_call_does(operation: Operation) -> None:
    tool = next(tool for tool in tools() if tool["name"] == operation.name)
    marks = tool["annotations"]
    assert marks["readOnlyHint"] is (not operation.writes)
    assert (marks["destructiveHint"], marks["openWorldHint"]) == (False, False)
    assert marks["idempotentHint"] is (operation.name != "resume")
    assert tool.get("_meta", {}).get("anthropic/alwaysLoad", False) is operation.writes
    largest = tool.get("_meta", {}).get("anthropic/maxResultSizeChars")
    assert largest == (500_000 if operation.name == "resume" else None)


def test_the_instructions_fit_into_what_every_client_shows() -> None:
    assert len(INSTRUCTIONS.encode()) <= 2_048
    for word in ("resume", "save_checkpoint", "attempt", "peek=true", "in_flight", "passwords", "watch"):
        assert word in INSTRUCTIONS


def test_a_calm_reply_has_no_hints() -> None:
    reply = {"outcome": "fine", "usage": {"used": 399, "limit": 500, "reset_at": "later"}, "status": "new"}
    assert for_agents(reply, where=None) == reply


def test_a_quota_at_eighty_percent_is_worth_a_hint() -> None:
    reply = {"usage": {"used": 400, "limit": 500, "reset_at": "2026-03-02T00:00:00Z"}}
    (hint,) = for_agents(reply, where=None)["hints"]
    assert "400 of 500" in hint
    assert "usage_and_upgrade" in hint


@pytest.mark.parametrize(("before", "words"), [(4, "seq=4"), (None, "ask the user")])
def test_a_stuck_run_gets_a_way_out(before: int | None, words: str) -> None:
    stuck = {"attempts": 3, "from_seq": 5} | ({} if before is None else {"fall_back_seq": before})
    (hint,) = for_agents({"stuck": stuck}, where=None)["hints"]
    assert words in hint


def test_a_long_state_without_a_service_is_found_by_the_command_line() -> None:
    reply = {"run_id": "r", "checkpoint": {"seq": 1, "bytes": 300_000}}
    (hint,) = for_agents(reply, where=None)["hints"]
    assert "left out" in hint
    assert "runmemory show r --json" in hint


def test_the_order_is_small_to_large() -> None:
    given = {"checkpoint": {}, "done": [], "outcome": "o", "unfinished": [], "status": "resumed"}
    assert list(json.loads(json.dumps(for_agents(given, where=None)))) == [
        "outcome",
        "status",
        "unfinished",
        "done",
        "checkpoint",
    ]
