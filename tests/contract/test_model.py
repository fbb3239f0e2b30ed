"""Whatever happens in whatever order, every face answers as the model does."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from runmemory_core.model import Plan
from runmemory_core.operations import OPERATIONS
from tests.contract.faces import DAY, FACES, HOUR, Face, open_face
from tests.contract.model import LIMITS, Model, Outcome
from tests.contract.network import Served

ADAPTER = "langgraph"
names = st.sampled_from(["a", "b"])
keys = st.sampled_from([None, None, None, "k1", "k2"])
sizes = st.sampled_from([10, 10, 10, 1_024 - len('{"t":""}'), 1_025 - len('{"t":""}')])
maybe = st.booleans


class Machine(RuleBasedStateMachine):
    """One account behind one face, and its model."""

    def __init__(self, open_one: Callable[[Path], Face], succeeded: set[str]) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.face = open_one(Path(self.folder.name))
        self.client = self.face.client(account="customer", plan=Plan.PRO, limits=LIMITS)
        self.succeeded = succeeded
        self.model = Model()
        self.model.now = self.face.clock.now_ms
        self.numbers = 0

    def teardown(self) -> None:
        self.face.close()
        self.folder.cleanup()

    def compare(self, operation: str, call: Callable[[], Any], expected: Outcome, seen: Any = None) -> None:
        """``call`` is refused as expected, or what is ``seen`` of its reply is what is expected."""
        if isinstance(expected, type):
            with pytest.raises(expected):
                call()
            return
        reply = call()
        self.succeeded.add(operation)
        assert (reply if seen is None else seen(reply)) == expected, operation

    @rule(
        run_id=names,
        step=st.sampled_from(["one", "two"]),
        size=st.none() | sizes,
        done=st.none() | st.lists(st.sampled_from("xyz"), max_size=3),
        status=st.sampled_from([None, None, None, "paused", "failed", "finished"]),
        attempt=st.sampled_from([None, None, 0, 0, -1]),
        seq=st.sampled_from([None, None, 0, 0, 1]),
        key=keys,
    )
    def save(
        self, run_id: str, step: str, *, size: Any, done: Any, status: Any, attempt: Any, seq: Any, key: Any
    ):
        run = self.model.known(run_id)
        known, at = (run.attempt, run.seq) if run else (1, 0)
        given: dict[str, Any] = {
            "step": step,
            "state": None if size is None else {"t": "x" * size},
            "done": done,
            "status": status,
            "attempt": None if attempt is None else max(1, known + attempt),
            "expected_seq": None if seq is None else at + seq,
        }
        arguments: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self.compare(
            "save_checkpoint",
            lambda: self.client.save_checkpoint(run_id, **arguments, idempotency_key=key),
            self.model.save(run_id, arguments, key),
            lambda reply: (reply.code, reply.seq),
        )

    @rule(run_id=names, start_over=st.sampled_from([False, False, False, True]), key=keys)
    def resume(self, run_id: str, start_over: Any, key: Any):
        self.compare(
            "resume",
            lambda: self.client.resume(run_id, start_over=start_over, idempotency_key=key),
            self.model.resume(run_id, key, start_over=start_over),
            self.shown,
        )

    def shown(self, reply: Any) -> tuple[Any, ...]:
        assert reply.usage.used == self.model.used
        last = reply.checkpoint
        of_last = (last.seq, last.step, last.state) if last else (None, None, None)
        return reply.status, reply.attempt, *of_last, reply.done

    @rule(run_id=names)
    def look(self, run_id: str):
        self.compare(
            "resume", lambda: self.client.resume(run_id, peek=True), self.model.look(run_id), self.shown
        )
        self.compare(
            "list_checkpoints",
            lambda: self.client.list_checkpoints(run_id),
            self.model.listed(run_id),
            lambda reply: tuple(row.seq for row in reply.checkpoints),
        )

    @rule()
    def ask(self):
        self.compare(
            "usage_and_upgrade", self.client.usage_and_upgrade, (self.model.used,), lambda r: (r.usage.used,)
        )
        self.compare("weekly_report", self.client.weekly_report, ("reported",), lambda r: (r.code,))

    @rule(run_id=names)
    def delete(self, run_id: str):
        expected = (self.model.delete(run_id),)
        self.compare(
            "delete_run", lambda: self.client.store.delete_run(run_id), expected, lambda r: (r.count,)
        )

    @rule(length=st.sampled_from([HOUR, 5 * HOUR, DAY, DAY, 6 * DAY, 8 * DAY, 31 * DAY, 340 * DAY]))
    def wait(self, length: int):
        self.face.clock.forward(length)
        self.model.now += length
        if length > DAY:
            # What may have expired is unknown until a sweep decided it; the adapter's run begins anew.
            self.client.store.delete_run("graph")
            self.model.graph, self.model.graph_seq = {}, 0
            self.face.sweep()
            self.model.sweep()

    @rule()
    def commit(self):
        self.numbers += 1
        key = f"k{self.numbers:05}"
        put = {"op": "put", "key": key, "state": [], "metadata": {"even": self.numbers % 2 == 0}}
        expected = self.model.commit(key)
        self.compare(
            "commit",
            lambda: self.client.store.commit("graph", ADAPTER, operations=[put], parts={}),
            expected,
            lambda reply: ("committed", reply.seqs[0]),
        )

    @rule()
    def read_graph(self):
        store, kept = self.client.store, sorted(self.model.graph, reverse=True)
        newest = (kept[0] if kept else None,)
        self.compare(
            "fetch", lambda: store.fetch("graph"), newest, lambda r: (r.entry.key if r.entry else None,)
        )
        self.compare(
            "history", lambda: store.history("graph"), tuple(kept), lambda r: tuple(e.key for e in r.entries)
        )
        if kept:
            self.compare(
                "chain",
                lambda: store.chain("graph", key=kept[0]),
                (kept[0],),
                lambda r: tuple(e.key for e in r.entries),
            )

    def fill_graph(self) -> dict[str, int]:
        """The adapter's run with at least two checkpoints, one of them even and one odd, if the quota allows."""
        while len(self.model.graph) < 2 and not self.model.over_quota:
            self.commit()
        return self.model.graph

    @rule()
    def claim(self):
        if self.fill_graph():
            store = self.client.store
            self.compare("claim", lambda: store.claim("graph", ADAPTER), ("graph",), lambda r: (r.run_id,))

    @rule()
    def prune(self):
        if kept := self.fill_graph():
            self.model.graph = {max(kept): kept[max(kept)]}
            expected = (len(kept) - 1,)
            self.compare("prune", lambda: self.client.store.prune("graph"), expected, lambda r: (r.count,))

    @rule()
    def delete_by_metadata(self):
        kept = self.fill_graph()
        doomed = [key for key in kept if int(key[1:]) % 2 == 0]
        if len(doomed) == len(kept):
            return  # the run would go with them
        self.model.graph = {key: seq for key, seq in kept.items() if key not in doomed}
        self.compare(
            "delete_by_metadata",
            lambda: self.client.store.delete_by_metadata(ADAPTER, metadata={"even": True}),
            (len(doomed),),
            lambda r: (r.count,),
        )

    @rule()
    def copy_run(self):
        store, kept = self.client.store, self.fill_graph()
        if kept:
            copied = (len(kept),)
            self.compare(
                "copy_run",
                lambda: store.copy_run("graph", target_run_id="copy"),
                copied,
                lambda r: (r.count,),
            )
            store.delete_run("copy")


def hold(name: str, served: Callable[[], Served], *, examples: int, steps: int, random: bool) -> None:
    """Every face answers as the model; and each operation succeeded, or the comparison would mean little."""
    succeeded: set[str] = set()
    run_state_machine_as_test(
        cast(
            "type[RuleBasedStateMachine]",
            lambda: Machine(lambda folder: open_face(name, folder, served), succeeded),
        ),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=not random,
            database=None,
            phases=[Phase.generate],  # shrinking repeats thousands of durable commits
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
    assert succeeded == set(OPERATIONS)


@pytest.mark.parametrize("name", FACES)
def test_every_face_answers_as_the_model(name: str, request: pytest.FixtureRequest) -> None:
    hold(name, lambda: request.getfixturevalue("served"), examples=12, steps=60, random=False)


@pytest.mark.long
@pytest.mark.parametrize("name", FACES)
def test_every_face_answers_as_the_model_for_long(name: str, request: pytest.FixtureRequest) -> None:
    hold(name, lambda: request.getfixturevalue("served"), examples=60, steps=120, random=True)
