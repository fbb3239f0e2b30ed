"""That an agent can do what a hint says, with what the hint says."""

from __future__ import annotations

import re

from tests.service.messages import call, shown
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
