"""What an agent gets over /mcp: the same in each revision of the protocol."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier
from typing import Any

import anyio
import pytest
from mcp.client import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from runmemory_core.model import Plan
from runmemory_core.operations import TOOLS
from tests.service.messages import HANDSHAKE, MODERN, REVISIONS, call, post, refused, shown
from tests.service.serving import PATIENCE_SECONDS, Service, new_key_in

STATE: dict[str, Any] = {
    "nothing": None,
    "numbers": [1.0, -0.0, 1e22, 12345678901234567890123],
    "text": "\0 ü ≠ 𝄞 \u2028",
    "list": [None, [], {}],
}


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_was_saved_comes_back_exactly(service: Service, run_id: str, revision: str) -> None:
    begun = shown(call(service, "resume", {"run_id": run_id}, revision=revision))
    assert (begun["status"], begun["attempt"]) == ("new", 1)
    step = {"run_id": run_id, "step": "one", "attempt": 1, "state": STATE, "done": ["a", 2]}
    saved = shown(call(service, "save_checkpoint", step, revision=revision))
    assert (saved["saved"], saved["seq"], saved["mode"]) == (True, 1, "acting")
    resumed = shown(call(service, "resume", {"run_id": run_id}, revision=revision))
    assert resumed["done"] == ["a", "2"]
    assert json.dumps(resumed["checkpoint"]["state"]) == json.dumps(STATE)
    kept = service.tool("resume", {"run_id": run_id, "peek": True}).json
    assert resumed["checkpoint"] == kept["checkpoint"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_all_five_tools_answer(service: Service, run_id: str, revision: str) -> None:
    arguments = {
        "resume": {"run_id": run_id},
        "save_checkpoint": {"run_id": run_id, "step": "one", "state": {}},
        "list_checkpoints": {"run_id": run_id},
        "weekly_report": {},
        "usage_and_upgrade": {},
    }
    assert list(arguments) == [operation.name for operation in TOOLS]
    for name, given in arguments.items():
        reply = shown(call(service, name, given, revision=revision))
        assert {"understood", "job", "outcome", "mode", "code", "usage"} <= reply.keys()


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_the_handshake_brings_the_instructions_and_the_revision(service: Service, revision: str) -> None:
    client = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = post(service, "initialize", client, revision=revision)
    result = answer.json["result"]
    assert result["protocolVersion"] == revision
    assert "FIRST" in result["instructions"]
    assert result["serverInfo"]["name"] == "run-memory"
    assert "mcp-session-id" not in answer.headers
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    said = service.ask("POST", "/mcp", ready, headers={"mcp-protocol-version": revision})
    assert (said.status, said.body) == (202, b"")


def test_the_newest_revision_needs_no_handshake(service: Service) -> None:
    result = post(service, "server/discover").json["result"]
    assert MODERN in result["supportedVersions"]
    assert "FIRST" in result["instructions"]


def test_small_fields_come_first_and_the_state_last(service: Service, run_id: str) -> None:
    long = {"run_id": run_id, "step": "one", "state": {"text": "x" * 200_000}, "done": ["a"]}
    call(service, "save_checkpoint", long)
    result = call(service, "resume", {"run_id": run_id})
    text = result["content"][0]["text"]
    head = text[:2_000]
    assert '"outcome"' in head
    assert '"done"' in head
    assert f"{service.url}/api/run/{run_id}/state?seq=1&offset=0&length=10000" in head
    assert list(shown(result))[-1] == "checkpoint"
    assert list(shown(result)["checkpoint"])[-1] == "state"
    assert shown(result)["checkpoint"]["state"] == long["state"]


def test_what_the_hint_points_at_is_the_state(service: Service, run_id: str) -> None:
    call(service, "save_checkpoint", {"run_id": run_id, "step": "one", "state": {"text": "x" * 50_000}})
    (hint,) = shown(call(service, "resume", {"run_id": run_id}))["hints"]
    path = hint.partition(service.url)[2].partition(" ")[0]
    assert service.ask("GET", path, key=service.key).body == b'{"text":"' + b"x" * 9_991


def test_hints_name_what_needs_attention_and_nothing_else(service: Service, run_id: str) -> None:
    assert "hints" not in shown(call(service, "resume", {"run_id": run_id}))
    started = {"run_id": run_id, "step": "one", "next_step": "pay", "state": {"password": "hunter2"}}
    saved = shown(call(service, "save_checkpoint", started | {"attempt": 1}))
    assert len(saved["hints"]) == 1
    assert "/password" in saved["hints"][0]
    resumed = shown(call(service, "resume", {"run_id": run_id}))
    assert [hint for hint in resumed["hints"] if "in_flight" in hint]
    unfenced = shown(call(service, "save_checkpoint", {"run_id": run_id, "step": "two", "state": {}}))
    assert unfenced["hints"] == [hint for hint in unfenced["hints"] if "attempt=2" in hint]


def test_over_quota_is_an_answer_with_a_way_out(service: Service, run_id: str) -> None:
    key = new_key_in(service.database, account=run_id, plan=Plan.PRO)
    call(service, "save_checkpoint", {"run_id": run_id, "step": "one", "state": {}}, key=key)
    with closing(sqlite3.connect(service.database.removeprefix("sqlite:///"))) as connection, connection:
        ours = "account_id = (SELECT account_id FROM accounts WHERE name = ?)"
        connection.execute(f"UPDATE usage SET calls = 50000 WHERE {ours}", (run_id,))
    reply = shown(
        call(service, "save_checkpoint", {"run_id": run_id, "step": "two", "state": {"n": 2}}, key=key)
    )
    assert (reply["saved"], reply["code"]) == (False, "over_quota")
    assert "reset_at" in reply
    assert "usage_and_upgrade" in reply["hints"][0]
    peek = shown(call(service, "resume", {"run_id": run_id, "peek": True}, key=key))
    assert peek["checkpoint"]["step"] == "one"
    assert "50,000 of 50,000" in peek["hints"][0]


def test_without_a_key_a_save_is_previewed(service: Service, run_id: str) -> None:
    reply = shown(
        call(service, "save_checkpoint", {"run_id": run_id, "step": "one", "state": {"cursor": 1}}, key=None)
    )
    assert (reply["saved"], reply["mode"]) == (False, "watch")
    assert reply["would_save"]["state"] == {"cursor": 1}
    assert list(reply)[-1] == "would_save"


REFUSALS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a missing argument": ("save_checkpoint", {"run_id": "r"}, "step is required by save_checkpoint"),
    "an unknown argument": (
        "resume",
        {"run_id": "r", "cursor": 1},
        "cursor is not an argument of resume; it takes run_id, peek, seq, attempt, start_over",
    ),
    "a wrong type": ("resume", {"run_id": "r", "peek": "yes"}, "peek should be a valid boolean"),
    "a state that is text": (
        "save_checkpoint",
        {"run_id": "r", "step": "s", "state": "plain"},
        "state is a string that is not a JSON object: send the object itself",
    ),
    "NaN": ("save_checkpoint", {"run_id": "r", "step": "s", "state": {"n": float("nan")}}, "/state/n is NaN"),
    "a state over the limit": (
        "save_checkpoint",
        {"run_id": "r", "step": "s", "state": {"text": "x" * 262_144}},
        "the limit is 262,144",
    ),
    "a checkpoint that does not exist": (
        "resume",
        {"run_id": "r", "seq": 7},
        "run r has no checkpoint 7; its latest is ",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("revision", [HANDSHAKE[0], MODERN])
def test_a_refusal_is_one_sentence_that_a_model_can_act_on(
    service: Service, run_id: str, name: str, revision: str
) -> None:
    tool, arguments, words = REFUSALS[name]
    if name == "a checkpoint that does not exist":
        call(service, "save_checkpoint", {"run_id": "r", "step": "s", "state": {}})
    result = call(service, tool, arguments, revision=revision)
    assert words in refused(result)
    assert result["_meta"]["runmemory/problem"]["code"]


def test_a_state_in_a_string_is_taken_as_the_object_and_said_so(service: Service, run_id: str) -> None:
    given = {"run_id": run_id, "step": "one", "state": '{"cursor": 1}'}
    assert "taken as that object" in shown(call(service, "save_checkpoint", given))["notices"][0]


def test_null_counts_as_absent(service: Service, run_id: str) -> None:
    given = {"run_id": run_id, "step": "one", "state": {}, "job": None, "attempt": None, "done": None}
    assert shown(call(service, "save_checkpoint", given))["saved"] is True


# The SDK maps an error code to a status as each revision has it: until 2025-11-25 an error of JSON-RPC is an
# answer like any other, 200; since 2026-07-28 it is 400, and 404 for an unknown method.
@pytest.mark.parametrize(("revision", "status"), [*((old, 200) for old in HANDSHAKE), (MODERN, 400)])
def test_an_unknown_tool_is_named_with_those_there_are(service: Service, revision: str, status: int) -> None:
    answer = post(service, "tools/call", {"name": "save", "arguments": {}}, revision=revision)
    error = answer.json["error"]
    assert (answer.status, error["code"]) == (status, -32602)
    assert "save_checkpoint" in error["message"]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("arguments", ["{}", [1], 7])
def test_arguments_that_are_no_object_are_answered_in_words(
    service: Service, revision: str, arguments: Any
) -> None:
    params = {"name": "resume", "arguments": arguments}
    answer = post(service, "tools/call", params, revision=revision)
    assert (answer.status, answer.json["error"]["code"]) == (200, -32602)
    assert "must be a JSON object" in answer.json["error"]["message"]
    assert answer.json["id"] is not None


AT_ONCE = 400


def test_four_hundred_calls_at_once_never_see_each_others_data(service: Service) -> None:
    keys = [new_key_in(service.database, account=f"together-{n}") for n in range(AT_ONCE)]
    together = Barrier(AT_ONCE, timeout=PATIENCE_SECONDS)

    def worker(n: int) -> tuple[dict[str, Any], dict[str, Any]]:
        revision = REVISIONS[n % 3]
        step = {"run_id": "same", "step": f"step of {n}", "state": {"mine": n}}
        together.wait()
        saved = shown(call(service, "save_checkpoint", step, key=keys[n], revision=revision))
        together.wait()
        found = shown(call(service, "resume", {"run_id": "same"}, key=keys[n], revision=revision))
        return saved, found

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for n, (saved, found) in enumerate(threads.map(worker, range(AT_ONCE))):
            assert (saved["seq"], saved["step"]) == (1, f"step of {n}")
            assert found["checkpoint"]["state"] == {"mine": n}
            assert found["usage"]["used"] == 2


def test_the_official_client_resumes_what_it_saved(service: Service, run_id: str) -> None:
    async def talk() -> dict[str, Any]:
        named = {"Authorization": f"Bearer {service.key}"}
        async with (
            create_mcp_http_client(headers=named) as http,
            McpClient(streamable_http_client(f"{service.url}/mcp", http_client=http)) as client,
        ):
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == [operation.name for operation in TOOLS]
            step = {"run_id": run_id, "step": "one", "state": {"cursor": 1}}
            await client.call_tool("save_checkpoint", step)
            found = await client.call_tool("resume", {"run_id": run_id})
            assert found.structured_content is not None
            return found.structured_content

    assert anyio.run(talk)["checkpoint"]["state"] == {"cursor": 1}
