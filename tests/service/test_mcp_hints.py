"""That an agent can do what a hint says, with what the hint says."""

from __future__ import annotations

import re

from tests.service.messages import call, post, shown
from tests.service.serving import Service


def test_the_address_of_a_long_state_is_read_as_the_hint_says(service: Service, run_id: str) -> None:
    state = {"text": "x" * 20_000}
    call(service, "save_checkpoint", {"run_id": run_id, "step": "s", "state": state})
    (hint,) = shown(call(service, "resume", {"run_id": run_id, "peek": True}))["hints"]
    found = re.search(r"GET (\S+) reads it in parts, with the header (\S+): (.+)$", hint)
    assert found, hint
    url, header, value = found.groups()
    path = url.removeprefix(service.url).replace("length=10000", "length=30000")
    assert service.ask("GET", path).status == 404
    answer = service.ask("GET", path, headers={header: value.replace("<your key>", service.key)})
    assert answer.json == state


def test_an_agent_gets_all_of_a_long_list_of_done_ids_by_the_hints(service: Service, run_id: str) -> None:
    ids = [f"item {number}" for number in range(2_345)]
    call(service, "save_checkpoint", {"run_id": run_id, "step": "s", "done": ids})
    arguments: dict[str, object] = {"run_id": run_id}
    done: list[str] = []
    attempts: set[int] = set()
    while True:
        found = shown(call(service, "resume", arguments))
        done += found["done"]
        attempts.add(found["attempt"])
        (hint,) = found.get("hints", [""])
        if not hint:
            break
        said = re.search(
            rf"done goes up to id {len(done):,} of 2,345: .+peek=true and done_cursor=(\d+)", hint
        )
        assert said, hint
        arguments = {"run_id": run_id, "peek": True, "done_cursor": int(said[1])}
    assert done == ids
    assert len(attempts) == 1


def test_what_the_hints_ask_for_is_allowed_by_the_schema_that_agents_are_shown(service: Service) -> None:
    listed = post(service, "tools/list").json["result"]["tools"]
    (resume,) = (tool for tool in listed if tool["name"] == "resume")
    assert {"run_id", "peek", "done_cursor"} <= resume["inputSchema"]["properties"].keys()
