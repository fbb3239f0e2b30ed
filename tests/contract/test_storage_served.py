"""The storage interface of a service: what it removes, how much it takes, and how large states are read."""

from __future__ import annotations

from typing import Any

import pytest

from runmemory_core.errors import BodyTooLarge
from runmemory_core.model import MIB, Plan
from tests.contract.commits import addressed, commit, put
from tests.contract.faces import HttpFace, served_only


@served_only
@pytest.mark.rule("SIZ-02")
def test_a_body_is_bounded_by_its_path_and_plan(face: HttpFace) -> None:
    client = face.client()
    ids = [f"{number:0200}" for number in range(6_000)]
    with pytest.raises(BodyTooLarge) as refusal:
        client.save_checkpoint("import", "one", done=ids)
    assert refusal.value.facts["limit"] == MIB
    client.save_checkpoint("import", "one", done=ids[:5_000])
    texts = dict(kv for number in range(100) for kv in addressed(f'"{number}{"x" * 250_000}"').items())
    change: dict[str, Any] = {"op": "put", "key": "a"}
    change["state"] = [["x", {"l": [{"p": address} for address in texts]}]]
    few = dict(list(texts.items())[:10])
    assert len(commit(client, change, texts=few).missing) == 90
    with pytest.raises(BodyTooLarge) as refusal:
        commit(client, change, texts=texts | addressed(f'"{"y" * 250_000}"'))
    assert refusal.value.facts["limit"] == 24 * MIB
    with pytest.raises(BodyTooLarge) as refusal:
        commit(face.client(plan=Plan.WATCH), change, texts=few)
    assert refusal.value.facts["limit"] == MIB
    assert face.rows()["parts"] == 0


@served_only
@pytest.mark.rule("STO-20")
def test_a_large_state_is_read_whole_or_in_pieces(face: HttpFace) -> None:
    key = face.key()
    client = face.client_with(key)
    state = {"rows": [{"id": n, "text": "\xe4" * 300} for n in range(1_000)]}
    texts: dict[str, str] = {}
    commit(client, put("a", {"n": 1}, texts), put("b", state, texts), texts=texts)
    checkpoint = client.resume("graph").checkpoint
    assert checkpoint is not None
    assert checkpoint.state is None
    path = "/api/run/graph/state"
    whole = face.ask("GET", path, key=key)
    assert (whole.json, len(whole.body)) == (state, checkpoint.bytes)
    assert face.ask("GET", f"{path}?seq=1", key=key).json == {"n": 1}
    pieces: list[str] = []
    while len(read := "".join(pieces)) < int(whole.headers["run-memory-characters"]):
        asked = f"{path}?seq=2&offset={len(read)}&length=100000"
        pieces.append(face.ask("GET", asked, key=key).body.decode())
    assert read == whole.body.decode()
    assert len(pieces) > 2
    client.store.delete_run("graph")
    for missing in (path, f"{path}?seq=1", "/api/run/unknown/state"):
        assert face.ask("GET", missing, key=key).code == "not_found"
    client.save_checkpoint("import", "one")
    assert face.ask("GET", "/api/run/import/state?seq=2", key=key).code == "not_found"
    assert face.ask("GET", "/api/run/import/state?seq=x", key=key).code == "invalid_request"
    assert face.ask("GET", "/api/run/import/state").code == "not_found"
