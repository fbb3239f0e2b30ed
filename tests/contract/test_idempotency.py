"""Calls that come again: by whom a key is made, where it may stand, and what it covers."""

from __future__ import annotations

import pytest

from runmemory_core import Client, IdempotencyKeyReused
from runmemory_core.model import Limits
from tests.contract.commits import GRAPH, keys, put
from tests.contract.faces import Face, HttpFace, served_only

SAVE = "/api/run/save_checkpoint"


@pytest.mark.rule("SAV-22")
def test_two_bodies_are_compared_as_they_are_kept(client: Client) -> None:
    def save(password: str, cursor: int = 1) -> tuple[bool, int | None]:
        state = {"cursor": cursor, "password": password}
        reply = client.save_checkpoint("import", "one", state=state, idempotency_key="k")
        return reply.replayed, reply.seq

    assert [save("hunter2-one"), save("hunter2-two")] == [(False, 1), (True, 1)]
    with pytest.raises(IdempotencyKeyReused):
        save("hunter2-one", cursor=2)


@pytest.mark.rule("SAV-14")
def test_a_checkpoint_that_is_gone_leaves_its_answer(face: Face) -> None:
    client = face.client(limits=Limits(keep=1))
    first = client.save_checkpoint("import", "one", state={"a": 1}, idempotency_key="k")
    client.save_checkpoint("import", "two", state={"b": 2})
    again = client.save_checkpoint("import", "one", state={"a": 1}, idempotency_key="k")
    assert (again.seq, again.replayed, again.bytes) == (first.seq, True, first.bytes)
    assert [row.step for row in client.list_checkpoints("import").checkpoints] == ["two"]


@pytest.mark.rule("STO-04")
def test_a_commit_whose_checkpoint_is_gone_is_not_said_to_be_there(face: Face) -> None:
    client = face.client(limits=Limits(keep=1))
    operations = [put("a", {}, {})]
    first = client.store.commit("graph", GRAPH, operations=operations, parts={}, idempotency_key="k")
    client.store.commit("graph", GRAPH, operations=[put("b", {}, {}, parent="a")], parts={})
    again = client.store.commit("graph", GRAPH, operations=operations, parts={}, idempotency_key="k")
    assert (first.replayed, again.replayed) == (False, False)
    assert keys(client.store.history("graph").entries) == ["b"]


@served_only
@pytest.mark.rule("SAV-21")
def test_the_header_counts_as_the_argument(face: HttpFace) -> None:
    key = face.key()
    client = face.client_with(key)
    body = {"run_id": "import", "step": "one", "state": {"a": 1}}
    first = face.ask("POST", SAVE, body, key=key, headers={"idempotency-key": "k"})
    assert (first.status, first.json["seq"]) == (200, 1)
    client.save_checkpoint("import", "two")
    again = client.save_checkpoint("import", "one", state={"a": 1}, idempotency_key="k")
    assert (again.replayed, again.seq) == (True, 1)
    other = face.ask("POST", SAVE, body | {"step": "two"}, key=key, headers={"idempotency-key": "k"})
    assert other.code == "idempotency_key_reused"
    both = body | {"idempotency_key": "other"}
    differing = face.ask("POST", SAVE, both, key=key, headers={"idempotency-key": "k"})
    assert differing.code == "invalid_request"


@served_only
@pytest.mark.rule("SAV-23")
def test_an_answer_that_is_lost_on_the_way_costs_nothing_and_is_given_again(face: HttpFace) -> None:
    client = face.client()
    client.save_checkpoint("import", "one")
    client.resume("import")
    face.network.lost_answers = 1
    saved = client.save_checkpoint("import", "two", state={"a": 1}, done=["a"])
    assert (saved.seq, saved.replayed) == (2, True)
    face.network.lost_answers = 1
    resumed = client.resume("import")
    assert (resumed.attempt, resumed.replayed) == (3, True)
    face.network.lost_answers = 1
    commit = client.store.commit("graph", GRAPH, operations=[put("a", {}, {})], parts={})
    assert (commit.seqs, commit.replayed) == ([1], True)
    face.network.lost_answers = 1
    assert client.store.claim("graph", GRAPH).attempt == 2
    assert client.usage_and_upgrade().usage.used == 5
    # Each call has a key of its own: what is called twice happens twice.
    assert [client.resume("import").attempt for _ in range(2)] == [4, 5]
