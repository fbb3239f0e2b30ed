"""What is a JSON-RPC message, and what the others hear: never what they sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.service.messages import MODERN, REVISIONS, headers_for, message, post, refused
from tests.service.serving import Service


@pytest.mark.parametrize("revision", [None, "2025-06-18", "2025-11-25", MODERN])
@pytest.mark.parametrize("answer", [{"result": "SECRET"}, {"error": "SECRET"}, {"error": {"code": "SECRET"}}])
def test_an_answer_to_no_question_is_acknowledged_whatever_it_holds(
    service: Service, revision: str | None, answer: dict[str, Any]
) -> None:
    headers = {} if revision is None else {"mcp-protocol-version": revision}
    found = service.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1} | answer, headers=headers)
    assert (found.status, found.body) == (202, b"")


BAD_STATES = {
    "half a surrogate pair": ('"\\ud800"', "/state/n holds half a surrogate pair"),
    "an overlong integer": ("9" * 5_000, "/state/n is an integer of about 5,000 digits"),
    "an infinity": ("1e999", "/state/n is NaN, infinite or overflows a double"),
    "NaN": ("NaN", "/state/n is NaN, infinite or overflows a double"),
    "300 levels": ("[" * 300 + "]" * 300, "nested over"),
}


def save_with(bad: str, *, revision: str, number: str = "7") -> tuple[bytes, dict[str, str]]:
    """A call that saves a state with a text of JSON in it, and its headers."""
    arguments = {"run_id": "r", "step": "s", "state": {"n": "BAD"}}
    sent = message("tools/call", {"name": "save_checkpoint", "arguments": arguments}, revision=revision)
    text = json.dumps(sent | {"id": "ID"}).replace('"BAD"', bad).replace('"ID"', number)
    return text.encode(), headers_for(sent, revision=revision)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("name", BAD_STATES)
def test_a_state_that_json_cannot_hold_is_refused_in_the_result_of_the_call(
    service: Service, revision: str, name: str
) -> None:
    bad, words = BAD_STATES[name]
    body, headers = save_with(bad, revision=revision)
    answer = service.ask("POST", "/mcp", body, key=service.key, headers=headers)
    assert (answer.status, answer.json["id"]) == (200, 7)
    assert words in refused(answer.json["result"])
    assert answer.json["result"]["_meta"]["runmemory/problem"]["code"] == "invalid_json"


@pytest.mark.parametrize(
    ("number", "known"), [("7", 7), ('"seven"', "seven"), ("1" * 5_000, None), ('"\\ud800"', None)]
)
def test_what_is_no_sound_call_keeps_an_id_that_can_be_told(
    service: Service, number: str, known: object
) -> None:
    body = b'{"jsonrpc": "2.0", "id": %s, "method": "ping", "params": {"x": "\\ud800"}}' % number.encode()
    answer = service.ask("POST", "/mcp", body)
    assert (answer.status, answer.json["id"], answer.json["error"]["code"]) == (400, known, -32700)


def test_half_a_pair_outside_the_arguments_is_no_result_of_the_tool(service: Service) -> None:
    body, headers = save_with('"\\ud800"', revision=MODERN)
    answer = service.ask("POST", "/mcp", body.replace(b'"test"', b'"\\udfff"'), headers=headers)
    assert (answer.status, answer.json["id"], answer.json["error"]["code"]) == (400, 7, -32700)


@pytest.mark.parametrize("revision", REVISIONS)
def test_who_accepts_events_only_gets_every_answer_so(service: Service, revision: str) -> None:
    params = {"name": "resume", "arguments": "{}"}
    answer = post(service, "tools/call", params, revision=revision, headers={"accept": "text/event-stream"})
    assert answer.headers["content-type"] == "text/event-stream"
    event, data, *_ = answer.body.decode().split("\r\n")
    assert event == "event: message"
    assert json.loads(data.removeprefix("data: "))["error"]["code"] == -32602


@pytest.mark.parametrize("revision", [None, "2025-06-18", "2025-11-25"])
def test_params_that_are_null_count_as_absent(service: Service, revision: str | None) -> None:
    headers = {} if revision is None else {"mcp-protocol-version": revision}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": None}
    assert len(service.ask("POST", "/mcp", sent, headers=headers).json["result"]["tools"]) == 5


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource", "/register"])
def test_a_page_can_read_that_there_is_no_oauth(service: Service, path: str) -> None:
    asked = {"origin": "http://localhost:6274", "access-control-request-headers": "mcp-protocol-version"}
    allowed = service.ask("OPTIONS", path, headers=asked)
    assert (allowed.status, allowed.body) == (204, b"")
    assert allowed.headers["access-control-allow-headers"] == "mcp-protocol-version"
    answer = service.ask("GET", path, headers=asked)
    for each in (allowed, answer):
        assert each.headers["access-control-allow-origin"] == "*"
    assert (answer.status, answer.code) == (404, "not_found")
