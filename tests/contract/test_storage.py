"""The storage interface: what adapters write and read."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from pydantic_core import from_json

from runmemory_core import (
    CheckpointGone,
    Client,
    InvalidJson,
    InvalidRequest,
    OverQuota,
    RunDeleted,
    StaleAttempt,
    StateTooLarge,
    parts,
)
from runmemory_core.model import Limits
from runmemory_core.policy.json_rules import write
from tests.contract.commits import GRAPH, NO_ADDRESS, addressed, commit, fetched, keys, put, state_of, writes
from tests.contract.faces import Face


@pytest.mark.rule("STO-01")
def test_a_commit_is_fetched_whole(client: Client) -> None:
    state = {
        "chat": [f"message {n} " * 30 for n in range(100)],
        "text": "\U0001f600" * 80_000,
        "small": {"a": 1.0},
        "none": None,
    }
    texts: dict[str, str] = {}
    commit(client, put("a", {"first": True}, texts))
    change = put(
        "b", state, texts, parent="a", step="node", metadata={"source": "loop"}, extra={"=": {"v": 4}}
    )
    assert commit(
        client, change, writes("b", 1, [2]), writes("b", 3, task_id="u", task_path="p"), texts=texts
    ).seqs == [2]
    reply = client.store.fetch("graph", key="b")
    entry = fetched(reply)
    assert state_of(entry, reply.parts) == state
    assert entry.model_dump(exclude={"body"}) == {
        "run_id": "graph",
        "lane": "",
        "key": "b",
        "parent": "a",
        "seq": 2,
        "step": "node",
        "saved_at": "2026-03-01T12:00:00.000Z",
        "metadata": {"source": "loop"},
        "writes": [
            {
                "task_id": "task",
                "task_path": "",
                "writes": [(0, "channel", {"=": 1}), (1, "channel", {"=": [2]})],
            },
            {"task_id": "u", "task_path": "p", "writes": [(0, "channel", {"=": 3})]},
        ],
    }
    assert entry.body.extra == {"=": {"v": 4}}
    assert fetched(client.store.fetch("graph")).key == "b"
    assert client.store.fetch("graph", key="c").entry is None
    assert client.store.fetch("graph", lane="c").entry is None
    assert client.store.fetch("unknown").entry is None


@pytest.mark.rule("STO-01")
def test_parts_that_the_client_knows_are_left_out_of_a_fetch_and_pages_are_not(client: Client) -> None:
    state = {"chat": [f"message {n} " * 30 for n in range(40)], "text": "x" * 300}
    texts: dict[str, str] = {}
    commit(client, put("a", state, texts), texts=texts)
    pages = {
        page for _, node in fetched(client.store.fetch("graph")).body.state for page in parts.pages(node)
    }
    known = [address for address, text in texts.items() if "message 7 " not in text]
    reply = client.store.fetch("graph", known=[*known, NO_ADDRESS])
    assert reply.parts.keys() == pages | (texts.keys() - set(known))
    assert state_of(fetched(reply), texts | reply.parts) == state
    with pytest.raises(InvalidRequest, match="known"):
        client.store.fetch("graph", known=[NO_ADDRESS] * 5_001)


@pytest.mark.rule("STO-02")
def test_a_commit_that_lacks_parts_names_them_and_records_nothing(face: Face, client: Client) -> None:
    texts: dict[str, str] = {}
    change = put("a", {"chat": [f"message {n} " * 30 for n in range(70)]}, texts)
    commit(client, put("0", {}, {}))
    before = face.dump()
    lacking = dict(list(texts.items())[5:])
    reply = commit(client, put("b", {}, {}), change, texts=lacking)
    assert (sorted(reply.missing), reply.seqs) == (sorted(texts.keys() - lacking.keys()), [])
    # Only the pages are sent: what stands in them is missed as well.
    pages = {page: texts[page] for node in change["state"] for page in parts.pages(node[1])}
    assert set(commit(client, change, texts=pages).missing) == texts.keys() - pages.keys()
    assert commit(client, writes("b", 1) | {"writes": [[0, "x", {"p": NO_ADDRESS}]]}).missing == [NO_ADDRESS]
    assert face.dump() == before
    assert commit(client, change, texts=texts).missing == []
    assert commit(client, change | {"key": "c"}).seqs == [3]


@pytest.mark.rule("STO-03")
def test_writes_may_come_before_their_checkpoint(client: Client) -> None:
    assert commit(client, writes("a", 1)).seqs == []
    assert client.store.fetch("graph", key="a").entry is None
    commit(client, put("a", {"x": 1}, {}))
    assert fetched(client.store.fetch("graph", key="a")).writes[0].writes == [(0, "channel", {"=": 1})]


@pytest.mark.rule("STO-04", "STO-05")
def test_repeating_a_commit_changes_nothing_and_a_key_keeps_its_seq(face: Face, client: Client) -> None:
    first = [put("a", {"x": 1}, {}), writes("a", 1, 2), put("b", {"x": 2}, {}, parent="a")]
    assert commit(client, *first).seqs == [1, 2]

    def kept() -> list[str]:
        return [line for line in face.dump() if '"usage"' not in line]

    before = kept()
    assert commit(client, *first).seqs == [1, 2]
    assert kept() == before
    assert commit(client, put("a", {"x": 3}, {})).seqs == [1]
    reply = client.store.fetch("graph", key="a")
    assert state_of(reply.entry, reply.parts) == {"x": 3}
    assert commit(client, put("c", {}, {})).seqs == [3]


@pytest.mark.rule("STO-04")
def test_a_commit_that_comes_again_is_free_and_changes_nothing(face: Face) -> None:
    client = face.client(limits=Limits(calls_a_day=3))
    first: Any = {
        "operations": [put("a", {"x": 1}, {}), writes("a", 1)],
        "parts": {},
        "idempotency_key": "first",
    }
    second: Any = {
        "operations": [put("a", {"x": 2}, {}), writes("a", 2)],
        "parts": {},
        "idempotency_key": "second",
    }
    call = partial(client.store.commit, "graph", GRAPH)
    assert (call(**first).replayed, call(**first).replayed, call(**second).replayed) == (False, True, False)
    late = call(**first)
    assert (late.replayed, late.seqs) == (True, [1])
    reply = client.store.fetch("graph")
    assert state_of(reply.entry, reply.parts) == {"x": 2}
    assert [each.writes[0][2]["="] for each in fetched(reply).writes] == [1, 2]
    assert client.usage_and_upgrade().usage.used == 2
    commit(client, put("b", {}, {}))
    assert commit(client, put("b", {}, {})).replayed
    with pytest.raises(OverQuota):
        commit(client, put("c", {}, {}))
    assert call(**second).replayed
    client.store.delete_by_metadata(GRAPH, metadata={"none": 1})
    client.store.delete_run("graph")
    with pytest.raises(OverQuota):
        call(**second)


@pytest.mark.rule("STO-03")
def test_the_last_that_a_task_reports_is_the_newest(client: Client) -> None:
    commit(client, put("a", {}, {}))
    for value in ("A", "B", "A", "A"):
        commit(client, writes("a", value))
        commit(client, writes("a", "of another task", task_id="other"))
    found = [each for each in fetched(client.store.fetch("graph")).writes if each.task_id == "task"]
    assert [each.writes[0][2]["="] for each in found] == ["A", "B", "A"]


@pytest.mark.rule("STO-11", "STO-15")
def test_a_claim_and_a_copy_that_come_again_answer_the_same(client: Client) -> None:
    commit(client, put("a", {}, {}))
    claims = [client.store.claim("graph", GRAPH, idempotency_key="claim").attempt for _ in range(2)]
    assert claims == [2, 2]
    assert client.store.claim("graph", GRAPH).attempt == 3
    copies = [
        client.store.copy_run("graph", target_run_id="copy", idempotency_key="copy").count for _ in range(2)
    ]
    assert copies == [1, 1]
    with pytest.raises(InvalidRequest, match="run copy exists already"):
        client.store.copy_run("graph", target_run_id="copy")


@pytest.mark.rule("STO-15", "STO-16")
def test_a_claim_does_not_bring_a_deleted_run_back(face: Face, client: Client) -> None:
    commit(client, put("a", {}, {}))
    client.store.delete_run("graph")
    before = face.dump()
    with pytest.raises(RunDeleted):
        client.store.claim("graph", GRAPH)
    with pytest.raises(StaleAttempt, match="there is no run unknown"):
        client.store.commit("unknown", GRAPH, operations=[put("a", {}, {})], parts={}, attempt=4)
    assert face.dump() == before


@pytest.mark.rule("STO-06")
def test_seq_counts_puts_over_all_lanes(client: Client) -> None:
    assert commit(
        client, put("a", {}, {}), put("a", {}, {}, lane="sub"), writes("a", 1), put("b", {}, {})
    ).seqs == [1, 2, 3]
    assert fetched(client.store.fetch("graph", key="a")).seq == 1
    assert fetched(client.store.fetch("graph", lane="sub")).seq == 2
    assert [(row.seq, row.lane) for row in client.list_checkpoints("graph").checkpoints] == [
        (3, ""),
        (2, "sub"),
        (1, ""),
    ]
    assert {(row.seq, row.lane) for row in client.list_checkpoints().checkpoints} == {
        (3, ""),
        (2, "sub"),
        (1, ""),
    }


@pytest.mark.rule("STO-07")
def test_history_gives_checkpoints_newest_first(client: Client) -> None:
    for number in range(6):
        lane = "sub" if number % 2 else ""
        commit(
            client, put(f"k{number}", {"n": number}, {}, lane=lane, metadata={"step": number, "user": "ann"})
        )
    client.store.commit("other", "crew", operations=[put("k9", {}, {})], parts={})
    client.save_checkpoint("plain", "one")

    def found(**arguments: Any) -> list[str]:
        return keys(client.store.history(**arguments).entries)

    assert found() == ["k9", "k5", "k4", "k3", "k2", "k1", "k0"]
    assert found(adapter=GRAPH) == found(run_id="graph") == ["k5", "k4", "k3", "k2", "k1", "k0"]
    assert found(run_id="graph", lane="") == ["k4", "k2", "k0"]
    assert found(run_id="graph", lane="sub", before="k3") == ["k1"]
    assert found(run_id="graph", key="k3") == ["k3"]
    assert found(run_id="graph", metadata={"user": "ann", "step": 2}) == ["k2"]
    assert found(run_id="graph", metadata={"user": "bob"}) == []
    assert found(run_id="unknown") == []
    for metadata in (None, {"user": "ann"}):
        pages: list[str] = []
        cursor = None
        while True:
            page = client.store.history("graph", metadata=metadata, limit=4, cursor=cursor)
            pages += keys(page.entries)
            if (cursor := page.cursor) is None:
                break
        assert pages == ["k5", "k4", "k3", "k2", "k1", "k0"]
    reply = client.store.history("graph", limit=2)
    assert [state_of(entry, reply.parts)["n"] for entry in reply.entries] == [5, 4]


@pytest.mark.rule("STO-07")
def test_a_history_cursor_that_no_reply_gave_is_refused(client: Client) -> None:
    commit(client, put("a", {}, {}))
    cursors = ("x", "5", "[1]", "{}", '["a",1]', '["a","b","c"]', f'["a",{2**70},0]', "[" * 2_999)
    for cursor in cursors:
        with pytest.raises(InvalidRequest, match="cursor is not one that a reply gave"):
            client.store.history("graph", cursor=cursor)


@pytest.mark.rule("STO-08")
def test_nothing_in_a_metadata_filter_is_sql(client: Client) -> None:
    names = ("x' OR 1=1 --", 'a"b', "a.b", "$.a", "[0]", "", "a\0b", "'; DROP TABLE runs; --", "%", "ü")
    for number, name in enumerate(names):
        commit(client, put(f"k{number}", {}, {}, metadata={name: name, "other": 1}))
    commit(client, put("plain", {}, {}, metadata={"other": 1}))
    for number, name in enumerate(names):
        assert keys(client.store.history("graph", metadata={name: name}).entries) == [f"k{number}"]
        assert client.store.history("graph", metadata={name: "no"}).entries == []
        assert client.store.history("graph", metadata={f"{name}'": name}).entries == []
        assert client.store.delete_by_metadata(GRAPH, metadata={name: f"{name}' OR '1'='1"}).count == 0
        assert client.store.history("graph", key=name or "'", lane=name).entries == []
        assert client.store.fetch("graph", key=name or "'").entry is None
    assert len(client.store.history("graph").entries) == len(names) + 1


@pytest.mark.rule("STO-09")
def test_chain_walks_the_parents(client: Client) -> None:
    commit(client, put("a", {"n": 0}, {}), put("b", {"n": 1}, {}, parent="a"), writes("b", 7))
    commit(client, put("c", {"n": 2}, {}, parent="b"), put("side", {"n": 9}, {}, parent="a"))
    reply = client.store.chain("graph", key="c")
    assert keys(reply.entries) == ["c", "b", "a"]
    assert [state_of(entry, reply.parts)["n"] for entry in reply.entries] == [2, 1, 0]
    assert [len(entry.writes) for entry in reply.entries] == [0, 1, 0]
    assert keys(client.store.chain("graph", key="c", limit=2).entries) == ["c", "b"]
    assert client.store.chain("graph", key="x").entries == []
    assert client.store.chain("graph", key="a", lane="sub").entries == []
    commit(client, put("loop", {}, {}, parent="loop"))
    assert set(keys(client.store.chain("graph", key="loop", limit=5).entries)) == {"loop"}


@pytest.mark.rule("STO-10")
def test_an_evicted_key_is_gone_and_the_newest_of_a_lane_stays(face: Face) -> None:
    client = face.client(limits=Limits(keep=2))
    chat: list[str] = []
    texts: dict[str, str] = {}
    commit(client, put("k0", {"x": 1}, {}, lane="sub"))
    for number in range(9):
        chat.append(f"message {number} " * 30)
        change = put(f"k{number}", {"chat": chat}, texts, metadata={"step": number})
        commit(client, change, writes(f"k{number}", number), texts=texts)
    for number in range(7):
        with pytest.raises(
            CheckpointGone, match=f"checkpoint k{number} of run graph was removed by retention"
        ):
            client.store.fetch("graph", key=f"k{number}")
    assert client.store.fetch("graph", key="unknown").entry is None
    for number in (7, 8):
        reply = client.store.fetch("graph", key=f"k{number}")
        assert state_of(reply.entry, reply.parts) == {"chat": chat[: number + 1]}
    assert fetched(client.store.fetch("graph", lane="sub")).key == "k0"
    assert keys(client.store.history("graph").entries) == ["k8", "k7", "k0"]


@pytest.mark.rule("STO-10")
def test_ancestors_that_a_delta_channel_needs_stay(face: Face) -> None:
    client = face.client(limits=Limits(keep=2))
    for number in range(6):
        parent = {"parent": f"k{number - 2}"} if number > 1 else {}  # two branches side by side
        metadata = {"counters_since_delta_snapshot": {"messages": [1, number % 4], "odd": "value"}}
        commit(client, put(f"k{number}", {}, {}, metadata=metadata, **parent), writes(f"k{number}", number))
    assert keys(client.store.history("graph").entries) == ["k5", "k4"]
    assert [row.seq for row in client.list_checkpoints("graph").checkpoints] == [6, 5]
    chain = client.store.chain("graph", key="k5").entries
    assert [(entry.key, len(entry.writes)) for entry in chain] == [("k5", 1), ("k3", 1)]
    for key in ("k3", "k2"):
        with pytest.raises(CheckpointGone):
            client.store.fetch("graph", key=key)
    with pytest.raises(CheckpointGone, match="the oldest kept is 5"):
        client.resume("graph", seq=4)
    for number in range(6, 9):
        commit(client, put(f"k{number}", {}, {}, parent=f"k{number - 1}"))
    assert keys(client.store.chain("graph", key="k8").entries) == ["k8", "k7"]


@pytest.mark.rule("STO-22")
def test_the_lane_of_a_subgraph_call_goes_with_the_checkpoint_that_started_it(face: Face) -> None:
    client = face.client(limits=Limits(keep=1))

    def inner(lane: str, **parents: Any) -> dict[str, Any]:
        return put("x", {}, {}, lane=lane, metadata={"parents": parents} if parents else {})

    started = {"": "k1"}
    commit(client, put("k1", {}, {}), inner("call:1", **started), inner("call:1|deep:2", **started))
    commit(client, inner("lives:1|on", **started), inner("call:3"), inner("call:4", **{"": "k2"}))
    lanes = {entry.lane for entry in client.store.history("graph").entries}
    assert lanes == {"", "call:1", "call:1|deep:2", "lives:1|on", "call:3", "call:4"}
    commit(client, put("k2", {}, {}, parent="k1"))
    lanes = {entry.lane for entry in client.store.history("graph").entries}
    assert lanes == {"", "lives:1|on", "call:3", "call:4"}


@pytest.mark.rule("STO-10")
def test_writes_for_a_checkpoint_that_retention_removed_are_not_kept(face: Face) -> None:
    client = face.client(limits=Limits(keep=1))
    commit(client, put("a", {}, {}), put("b", {}, {}, parent="a"))
    commit(client, writes("a", 1))
    assert not any('INTO "writes"' in line for line in face.dump())
    assert commit(client, writes("b", 1)).missing == []
    assert len(fetched(client.store.fetch("graph")).writes) == 1


@pytest.mark.rule("STO-08")
def test_a_bool_in_a_filter_is_no_number(client: Client) -> None:
    commit(client, put("a", {}, {}, metadata={"step": 1, "in": [{"x": 1}]}))
    for metadata in ({"step": True}, {"in": [{"x": True}]}, {"absent": None}):
        assert client.store.history("graph", metadata=metadata).entries == []
    assert len(client.store.history("graph", metadata={"step": 1, "in": [{"x": 1}]}).entries) == 1


@pytest.mark.rule("STO-17")
def test_a_state_over_256_kb_is_left_out_of_resume_with_its_size(client: Client) -> None:
    texts: dict[str, str] = {}
    commit(client, put("a", {"text": "x" * 262_144}, texts), texts=texts)
    checkpoint = client.resume("graph").checkpoint
    assert checkpoint is not None
    assert (checkpoint.state, checkpoint.bytes) == (None, 262_144 + len('{"text":""}'))
    texts = {}
    commit(client, put("b", {"text": "x" * (262_144 - len('{"text":""}'))}, texts), texts=texts)
    checkpoint = client.resume("graph").checkpoint
    assert checkpoint is not None
    assert checkpoint.bytes == 262_144
    assert checkpoint.state is not None


@pytest.mark.rule("STO-23")
def test_a_whole_state_is_capped_and_the_refusal_names_its_channels(face: Face) -> None:
    client = face.client(limits=Limits(run_state_bytes=30_000))
    texts: dict[str, str] = {}
    chat = [f"{number:03}" + "é" * 197 for number in range(64)]
    commit(client, put("a", {"chat": chat, "note": "x"}, texts), texts=texts)
    size = len(write({"chat": chat, "note": "x"}).encode())
    assert [row.bytes for row in client.list_checkpoints("graph").checkpoints] == [size]
    before = face.dump()
    # Of what the store holds already nothing is sent, and it counts all the same.
    grown = put("b", {"chat": [*chat, *chat[:11]], "note": "x"}, texts)
    with pytest.raises(
        StateTooLarge, match=r"limit is 30,000.*By channel: chat 30,0\d\d, note 3$"
    ) as refusal:
        commit(client, grown)
    assert refusal.value.facts["channels"] == {"chat": 75 * 400 + 1, "note": 3}
    results = {"op": "writes", "key": "a", "writes": [[n, "chat", grown["state"][0][1]] for n in range(2)]}
    with pytest.raises(StateTooLarge, match="By channel: chat 60,002"):
        commit(client, results)
    assert face.dump() == before
    fits = put("b", {"chat": [*chat, *chat[:10]], "note": "x"}, {})
    assert commit(client, fits).seqs == [2]


@pytest.mark.rule("STO-02")
def test_a_part_that_was_kept_as_a_value_is_asked_for_where_it_is_named_as_a_page(client: Client) -> None:
    texts: dict[str, str] = {}
    page = write([{"p": parts.address('"y"')}] * 32)
    commit(client, put("a", {"x": from_json(page), "y": 1}, texts), texts=texts | addressed(page))
    as_value = {"op": "put", "key": "b", "state": [["x", {"p": parts.address(page)}]]}
    commit(client, as_value, texts=addressed(page))
    as_page = {"op": "put", "key": "c", "state": [["x", {"l": [{"g": parts.address(page)}]}]]}
    assert commit(client, as_page).missing == [parts.address(page)]
    assert commit(client, as_page, texts=addressed(page) | addressed('"y"')).seqs == [3]
    assert commit(client, as_page | {"key": "d"}).seqs == [4]
    reply = client.store.fetch("graph", key="d")
    assert state_of(reply.entry, reply.parts) == {"x": ["y"] * 32}


@pytest.mark.rule("STO-18")
def test_a_part_or_node_of_no_known_form_is_refused(face: Face, client: Client) -> None:
    commit(client, put("a", {}, {}))
    before = face.dump()
    with pytest.raises(StateTooLarge, match="is 262,145 bytes; the limit is 262,144"):
        commit(client, put("b", {}, {}), texts=addressed('"' + "é" * 131_071 + 'x"'))
    nodes: list[Any] = [
        {},
        {"q": 1},
        {"p": 1},
        {"p": NO_ADDRESS, "=": 1},
        {"g": NO_ADDRESS},
        {"c": [1]},
        {"l": [1]},
        {"l": [{"l": []}]},
        {"l": [{"g": NO_ADDRESS, "=": 1}]},
        {"o": []},
    ]
    for node in nodes:
        for change in (
            {"op": "put", "key": "b", "state": [["x", node]]},
            {"op": "put", "key": "b", "state": [], "extra": node},
            {"op": "writes", "key": "b", "writes": [[0, "x", node]]},
        ):
            with pytest.raises(InvalidRequest, match=r"operations\.1 has a node of no known form") as refusal:
                commit(client, put("c", {}, {}), change)
            assert list(refusal.value.pointers) == ["/operations/1"]
    for page in ("x", "{}", "[1]", '[{"l":[]}]', '[{"g":"' + NO_ADDRESS + '"}]', "["):
        change = {"op": "put", "key": "b", "state": [["x", {"l": [{"g": parts.address(page)}]}]]}
        with pytest.raises(InvalidRequest, match="no known form"):
            commit(client, change, texts=addressed(page))
    with pytest.raises(InvalidRequest, match="was changed on the way"):
        commit(client, put("b", {}, {}), texts={NO_ADDRESS: '"x"'})
    with pytest.raises(InvalidRequest):
        commit(client, put("b", {}, {}), texts={"short": '"x"'})
    assert face.dump() == before


@pytest.mark.rule("STO-18")
def test_what_json_cannot_hold_is_refused_before_it_is_kept(face: Face, client: Client) -> None:
    commit(client, put("a", {}, {}))
    before = face.dump()
    refused = {
        "/operations/0/metadata/x": put("b", {}, {}, metadata={"x": float("nan")}),
        "/operations/0/metadata/y": put("b", {}, {}, metadata={"y": "\ud800"}),
        "/operations/0/state/1/=": put("b", {}, {}) | {"state": [["x", {"=": float("inf")}]]},
    }
    for pointer, change in refused.items():
        with pytest.raises(InvalidJson) as refusal:
            commit(client, change)
        assert list(refusal.value.pointers) == [pointer]
    with pytest.raises(InvalidJson, match="half a surrogate pair"):
        commit(client, put("b", {}, {}), texts={NO_ADDRESS: '"\ud800"'})
    for broken in ("[1", "NaN", "[" * 300 + "]" * 300):
        change = {"op": "put", "key": "b", "state": [["x", {"p": parts.address(broken)}]]}
        with pytest.raises(InvalidJson, match="is named as a whole value and is not JSON"):
            commit(client, change, texts=addressed(broken))
    with pytest.raises(StateTooLarge, match="holds 262,146 bytes inline under 'x'"):
        commit(client, {"op": "put", "key": "b", "state": [["x", {"=": "x" * 262_144}]]})
    assert face.dump() == before
