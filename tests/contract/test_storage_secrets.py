"""What the storage interface removes of commits, whoever sends them."""

from __future__ import annotations

from typing import Any

import pytest

from runmemory_core import parts
from tests.contract.commits import addressed, commit, fetched, put, state_of
from tests.contract.faces import Face


@pytest.mark.rule("RED-06")
def test_the_engine_removes_secrets_wherever_a_commit_holds_them(face: Face) -> None:
    http = face.client()
    secret = {"password": "hunter2-hunter2"}
    texts = addressed(from_page := '[{"=":{"password":"hunter2-hunter2"}}]')
    change: Any = {
        "op": "put",
        "key": "a",
        "state": [["chat", {"l": [{"=": secret}, {"g": parts.address(from_page)}]}]],
        "extra": {"=": {"versions": [["password", "v1"]], "seen": [["token", [["secret", 2]]]]} | secret},
        "metadata": secret
        | {"parents": {"auth_token:1": "id"}, "counters_since_delta_snapshot": {"api_key": [1, 2]}},
    }
    commit(http, change, texts=texts)
    entry = fetched(reply := http.store.fetch("graph"))
    assert state_of(entry, reply.parts) == {"chat": [{"password": "[removed]"}] * 2}
    assert entry.body.extra == {
        "=": {
            "versions": [["password", "v1"]],
            "seen": [["token", [["secret", 2]]]],
            "password": "[removed]",
        }
    }
    assert entry.metadata == change["metadata"] | {"password": "[removed]"}


@pytest.mark.rule("RED-06")
def test_a_part_that_changes_is_still_known_by_its_address(face: Face) -> None:
    client = face.client()
    texts: dict[str, str] = {}
    change = put("a", {"login": {"note": "n" * 300, "password": "hunter2-hunter2"}}, texts)
    (text,) = (text for text in texts.values() if "hunter2" in text)
    commit(client, change, texts=texts)
    reply = client.store.fetch("graph")
    assert state_of(reply.entry, reply.parts) == {"login": {"note": "n" * 300, "password": "[removed]"}}
    assert reply.parts[parts.address(text)] == text.replace("hunter2-hunter2", "[removed]")
    assert commit(client, change | {"key": "b"}).missing == []


@pytest.mark.rule("RED-06")
def test_what_stands_beside_the_state_is_looked_through_in_any_form(face: Face) -> None:
    client = face.client()
    commit(client, {"op": "put", "key": "a", "state": [], "extra": {"=": [{"password": "hunter2"}]}})
    assert fetched(client.store.fetch("graph")).body.extra == {"=": [{"password": "[removed]"}]}
