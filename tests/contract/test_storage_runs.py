"""The storage interface: runs as wholes, and who may write them."""

from __future__ import annotations

import pytest

from runmemory_core import (
    AdapterRun,
    CheckpointGone,
    Client,
    InvalidRequest,
    NotFound,
    RunDeleted,
    SeqConflict,
    StaleAttempt,
)
from tests.contract.commits import GRAPH, commit, fetched, keys, put, state_of, writes
from tests.contract.faces import HOUR, Face


@pytest.mark.rule("STO-11")
def test_a_copied_run_is_whole_and_goes_on_by_itself(client: Client) -> None:
    texts: dict[str, str] = {}
    chat = [f"message {n} " * 30 for n in range(50)]
    commit(client, put("a", {"chat": chat}, texts), writes("a", 1), put("b", {}, {}, lane="sub"), texts=texts)
    assert client.store.copy_run("graph", target_run_id="copy").count == 2
    reply = client.store.fetch("copy")
    assert state_of(reply.entry, reply.parts) == {"chat": chat}
    assert len(fetched(reply).writes) == 1
    assert client.store.commit("copy", GRAPH, operations=[put("c", {}, {})], parts={}).seqs == [3]
    client.store.delete_run("graph")
    assert keys(client.store.history("copy").entries) == ["c", "b", "a"]
    with pytest.raises(InvalidRequest, match="run copy exists already"):
        client.store.copy_run("copy", target_run_id="copy")
    with pytest.raises(NotFound):
        client.store.copy_run("graph", target_run_id="other")
    assert client.store.copy_run("copy", target_run_id="graph").count == 3


@pytest.mark.rule("STO-11")
def test_a_copied_run_of_the_five_tools_keeps_state_and_done(client: Client) -> None:
    client.save_checkpoint("import", "one", state={"a": 1}, done=["a"])
    client.resume("import", start_over=True)
    client.save_checkpoint(
        "import", "two", state={"b": ["text " * 1_000]}, done=["b", "c"], next_step="three"
    )
    client.store.copy_run("import", target_run_id="copy")
    original, copy = (client.resume(run_id) for run_id in ("import", "copy"))
    assert copy.checkpoint == original.checkpoint
    assert (copy.done, copy.done_count, copy.attempt) == (["b", "c"], 2, 2)
    assert client.save_checkpoint("copy", "three", done=["c", "d"]).seq == 3
    assert client.resume("copy").done == ["b", "c", "d"]
    assert client.resume("import").done == ["b", "c"]


@pytest.mark.rule("STO-12")
def test_prune_keeps_the_latest_of_each_lane(client: Client) -> None:
    texts: dict[str, str] = {}
    for number in range(4):
        for lane in ("", "sub"):
            change = put(f"k{number}", {"text": f"{lane}{number} " * 100}, texts, lane=lane)
            commit(client, change, writes(f"k{number}", number, lane=lane), texts=texts)
    assert client.store.prune("graph").count == 6
    assert keys(client.store.history("graph").entries) == ["k3", "k3"]
    reply = client.store.fetch("graph", lane="sub")
    assert state_of(reply.entry, reply.parts) == {"text": "sub3 " * 100}
    with pytest.raises(CheckpointGone):
        client.store.fetch("graph", key="k2")
    assert client.store.prune("graph", strategy="delete").count == 2
    assert client.store.history("graph").entries == []
    assert client.store.prune("unknown").count == 0


@pytest.mark.rule("STO-13")
def test_only_what_equals_the_metadata_is_deleted(client: Client) -> None:
    texts: dict[str, str] = {}
    for run_id in ("one", "two"):
        for number in range(3):
            metadata = {"run": f"{run_id} {number % 2}"} | ({"extra": None} if number == 1 else {})
            change = put(f"k{number}", {"text": f"{number} " * 200}, texts, metadata=metadata)
            client.store.commit(run_id, GRAPH, operations=[change, writes(f"k{number}", 1)], parts=texts)
    client.store.commit("three", "crew", operations=[put("k0", {}, {}, metadata={"run": "one 0"})], parts={})
    assert client.store.delete_by_metadata(GRAPH, metadata={"missing": None}).count == 0
    assert client.store.delete_by_metadata(GRAPH, metadata={"run": "one 0", "extra": None}).count == 0
    assert client.store.delete_by_metadata(GRAPH, metadata={"run": "one 0"}).count == 2
    assert keys(client.store.history("one").entries) == ["k1"]
    reply = client.store.fetch("one")
    assert state_of(reply.entry, reply.parts) == {"text": "1 " * 200}
    assert len(client.store.history("two").entries) == 3
    assert len(client.store.history("three").entries) == 1
    assert client.store.delete_by_metadata(GRAPH, metadata={"run": "one 1"}).count == 1
    with pytest.raises(RunDeleted):
        client.store.commit("one", GRAPH, operations=[put("k9", {}, {}, parent="k1")], parts={})
    with pytest.raises(InvalidRequest):
        client.store.delete_by_metadata(GRAPH, metadata={})


@pytest.mark.rule("STO-14")
def test_a_run_is_written_by_one_adapter_or_by_the_five_tools(face: Face, client: Client) -> None:
    commit(client, put("a", {}, {}))
    client.save_checkpoint("import", "one")
    before = face.dump()
    with pytest.raises(AdapterRun, match="run graph is written by the langgraph adapter"):
        client.save_checkpoint("graph", "one")
    with pytest.raises(AdapterRun, match="run import is written by the five tools"):
        client.store.commit("import", GRAPH, operations=[put("a", {}, {})], parts={})
    with pytest.raises(AdapterRun):
        client.store.claim("import", GRAPH)
    with pytest.raises(AdapterRun):
        client.store.commit("graph", "crew", operations=[put("a", {}, {})], parts={})
    assert face.dump() == before


@pytest.mark.rule("STO-15")
def test_a_commit_with_a_replaced_attempt_is_refused(face: Face, client: Client) -> None:
    first = client.store.claim("graph", GRAPH).attempt
    commit(client, put("a", {}, {}), attempt=first)
    assert client.store.claim("graph", GRAPH).attempt == first + 1
    before = face.dump()
    with pytest.raises(StaleAttempt):
        commit(client, put("b", {}, {}), attempt=first)
    assert face.dump() == before
    assert commit(client, put("b", {}, {}), attempt=first + 1).seqs == [2]
    assert commit(client, put("c", {}, {})).seqs == [3]


@pytest.mark.rule("STO-16")
def test_a_late_commit_to_a_deleted_run_is_refused_and_a_first_one_begins_it_anew(
    face: Face, client: Client
) -> None:
    texts: dict[str, str] = {}
    first = put("a", {"text": "x" * 500}, texts)
    commit(client, first, texts=texts)
    client.store.delete_run("graph")
    before = face.dump()
    for late in (put("b", {}, {}, parent="a"), writes("a", 1)):
        with pytest.raises(RunDeleted):
            commit(client, late)
    assert client.store.fetch("graph").entry is None
    assert client.store.history("graph").entries == []
    assert face.dump() == before
    # The parts went with the run, so they are needed again.
    assert commit(client, first).missing == list(texts)
    assert commit(client, first, texts=texts).seqs == [1]
    assert keys(client.store.history("graph").entries) == ["a"]


@pytest.mark.rule("STO-21")
def test_a_linear_commit_continues_the_latest_and_any_other_names_its_forks(
    face: Face, client: Client
) -> None:
    commit(client, put("a", {}, {}), put("b", {}, {}, parent="a"), linear=True)
    before = face.dump()
    with pytest.raises(
        SeqConflict, match="checkpoint c of run graph continues a, but b is the latest"
    ) as refusal:
        commit(client, put("c", {}, {}, parent="a"), linear=True)
    assert refusal.value.facts == {"expected_key": "a", "current_key": "b"}
    with pytest.raises(SeqConflict, match="continues nothing"):
        commit(client, put("c", {}, {}), linear=True)
    assert face.dump() == before
    forked = commit(client, put("c", {}, {}, parent="a"), put("d", {}, {}, parent="c"))
    assert (forked.forks, forked.seqs) == (["c"], [3, 4])
    # Putting again what is there is no fork.
    assert commit(client, put("b", {"x": 1}, {}, parent="a"), linear=True).seqs == [2]


@pytest.mark.rule("REP-05")
def test_a_restart_that_an_adapter_notices_is_in_the_report(face: Face, client: Client) -> None:
    commit(client, put("a", {}, {}, step="first node"))
    face.clock.forward(HOUR)
    commit(client, put("b", {}, {}, parent="a", restart=True), writes("b", 1))
    commit(client, put("c", {}, {}, parent="b"))
    report = client.weekly_report()
    assert report.numbers["restarts"] == 1
    assert 'graph stopped after "first node" on 2026-03-01 at 12:00 UTC.' in report.text
    assert report.numbers["abandoned"] == 0


@pytest.mark.rule("STO-19")
def test_accounts_see_nothing_of_each_other(face: Face) -> None:
    mine, other = face.client(account="mine"), face.client(account="other")
    for client, text in ((mine, "mine"), (other, "other")):
        client.save_checkpoint("import", "one", state={"text": text}, done=[text], idempotency_key="k")
        texts: dict[str, str] = {}
        commit(client, put("a", {"text": text * 100}, texts, metadata={"a": 1}), texts=texts)
    assert other.resume("import", peek=True).done == ["other"]
    assert len(mine.list_checkpoints().checkpoints) == 2
    assert mine.weekly_report().numbers["runs"] == 2
    assert [entry.run_id for entry in mine.store.history().entries] == ["graph"]
    mine.save_checkpoint("private", "one")
    with pytest.raises(NotFound):
        other.list_checkpoints("private")
    with pytest.raises(NotFound):
        other.store.copy_run("private", target_run_id="copy")
    assert {run.run_id for run in other.resume("new").unfinished} == {"graph", "import"}
    assert mine.store.delete_by_metadata(GRAPH, metadata={"a": 1}).count == 1
    assert mine.store.delete_run("import").count == 1
    assert other.resume("import", peek=True).done == ["other"]
    reply = other.store.fetch("graph")
    assert state_of(reply.entry, reply.parts) == {"text": "other" * 100}


def report_of(client: Client) -> tuple[int, str]:
    report = client.weekly_report()
    return report.numbers["restarts"], report.text


@pytest.mark.rule("STO-21")
def test_a_checkpoint_that_does_not_continue_the_latest_is_a_fork(client: Client) -> None:
    assert commit(client, put("b", {}, {}), put("c", {}, {}, parent="b")).forks == []
    assert commit(client, put("d", {}, {}, parent="b")).forks == ["d"]
    assert commit(client, put("e", {}, {}, parent="d"), put("e", {}, {}, lane="sub")).forks == []
    assert commit(client, put("ca", {}, {}, parent="c"), put("f", {}, {})).forks == ["ca", "f"]
    assert commit(client, put("ca", {"again": 1}, {}, parent="c")).forks == []
    assert keys(client.store.history("graph", lane="").entries) == ["f", "e", "d", "ca", "c", "b"]


@pytest.mark.rule("STO-21")
def test_a_linear_commit_is_refused_where_another_worker_went_on(face: Face, client: Client) -> None:
    commit(client, put("a", {}, {}), linear=True)
    commit(client, put("b", {}, {}, parent="a"), put("c", {}, {}, parent="b"), linear=True)
    before = face.dump()
    for late, parent in (("d", "b"), ("ba", "a"), ("e", None)):
        change = put(late, {}, {}) | ({} if parent is None else {"parent": parent})
        with pytest.raises(
            SeqConflict, match=f"{late} of run graph continues .+, but c is the latest"
        ) as refusal:
            commit(client, writes("a", 1), change, linear=True)
        facts = refusal.value.facts
        assert (facts["expected_key"], facts["current_key"]) == (parent, "c")
    assert face.dump() == before
    assert commit(client, put("a", {"again": 1}, {}), linear=True).seqs == [1]
    assert commit(client, put("a", {}, {}, lane="sub"), writes("b", 1), linear=True).seqs == [4]


@pytest.mark.rule("STO-24")
def test_a_put_that_goes_on_where_a_process_stopped_is_a_restart(face: Face, client: Client) -> None:
    commit(client, put("a", {}, {}, step="draft"))
    assert report_of(client)[0] == 0
    face.clock.forward(HOUR)
    going_on = put("b", {}, {}, parent="a", restart=True)
    for _ in ("it comes", "it comes again"):
        commit(client, going_on)
    commit(client, going_on | {"state": [["x", {"=": 1}]]})
    restarts, text = report_of(client)
    assert restarts == 1
    assert 'graph stopped after "draft" on 2026-03-01 at 12:00 UTC.' in text
    assert client.store.claim("graph", GRAPH).attempt == 3


@pytest.mark.rule("STO-24")
def test_a_claim_is_a_restart_unless_the_attempt_before_finished_or_paused(
    face: Face, client: Client
) -> None:
    assert client.store.claim("graph", GRAPH).attempt == 1
    assert report_of(client)[0] == 0
    commit(client, put("a", {}, {}, step="draft"), attempt=1)
    face.clock.forward(HOUR)
    for _ in ("it comes", "it comes again"):
        assert client.store.claim("graph", GRAPH, idempotency_key="second").attempt == 2
    restarts, text = report_of(client)
    assert restarts == 1
    assert 'graph stopped after "draft" on 2026-03-01 at 12:00 UTC.' in text
    with pytest.raises(StaleAttempt, match="another worker resumed this run at 13:00"):
        commit(client, put("b", {}, {}, parent="a"), attempt=1)
    commit(client, put("b", {}, {}, parent="a", status="paused"), attempt=2)
    client.store.claim("graph", GRAPH)
    commit(client, put("c", {}, {}, parent="b", status="finished"), attempt=3)
    client.store.claim("graph", GRAPH)
    assert report_of(client)[0] == 1
