"""Rows 16 to 25 of what users reported notice their faults too: resuming, time, namespaces, order, forks, secrets.

Like `test_langgraph_faults`; each run has a folder of its own, because these rows make savers themselves.
"""

from __future__ import annotations

import asyncio
import inspect
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.checkpoint.serde.types import INTERRUPT

from runmemory_core.engine import committing, sweeping
from runmemory_core.engine._context import Context
from runmemory_langgraph import DecodingRefused, RunMemorySaver, _mapping
from runmemory_langgraph._encoding import Encoder, metadata_value
from runmemory_langgraph._loading import Values
from runmemory_langgraph._outbox import Outbox
from runmemory_langgraph._threads import Threads
from tests.adapters import test_langgraph_reports as reports

Patch = pytest.MonkeyPatch
Row = Callable[..., None]
ASSERTED = (AssertionError, pytest.fail.Exception)


def loads_interrupts_as_dicts(patch: Patch) -> None:
    load = Values.value

    def plain(self: Values, channel: str, node: Any, *, added: bool = False) -> Any:
        value = load(self, channel, node, added=added)
        return [{"value": each.value, "id": each.id} for each in value] if channel == INTERRUPT else value

    patch.setattr(Values, "value", plain)


def expires_half_a_thread(patch: Patch) -> None:
    """What is in it goes, and the thread itself stays."""
    sweep_run = sweeping._sweep_run

    class Sparing:
        def __init__(self, tx: Any) -> None:
            self._tx = tx

        def __getattr__(self, name: str) -> Any:
            return getattr(self._tx, name)

        def run(self, query: str, **values: Any) -> int:
            return 0 if query == "bury_run" else self._tx.run(query, **values)

    patch.setattr(
        sweeping, "_sweep_run", lambda tx, *rest, **at: sweep_run(cast("Any", Sparing(tx)), *rest, **at)
    )


def never_expires(patch: Patch) -> None:
    patch.setattr(sweeping, "_sweep_run", lambda *_, **__: sweeping._Gone())


def expires_early(patch: Patch) -> None:
    """By a clock that no write renews."""
    sweep_run = sweeping._sweep_run
    patch.setattr(
        sweeping,
        "_sweep_run",
        lambda tx, run, *rest, **at: sweep_run(tx, {**run, "updated_at": 0}, *rest, **at),
    )


def expires_by_checkpoints_alone(patch: Patch) -> None:
    """Results renew no clock."""
    record = committing._record

    def ageing(at: Any, run: Any, request: Any, *rest: Any, **named: Any) -> Any:
        is_put = any(change.op == "put" for change in request.operations)
        return record(
            at if is_put else Context(at.tx, at.caller, run["updated_at"]), run, request, *rest, **named
        )

    patch.setattr(committing, "_record", ageing)


def has_no_async_put(patch: Patch) -> None:
    patch.delattr(RunMemorySaver, "aput")


def has_async_methods_that_only_raise(patch: Patch) -> None:
    async def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError

    patch.setattr(RunMemorySaver, "aget_tuple", refuse)


def is_made_only_where_a_loop_runs(patch: Patch) -> None:
    init = RunMemorySaver.__init__

    def needing(self: RunMemorySaver, *given: Any, **options: Any) -> None:
        asyncio.get_running_loop()
        init(self, *given, **options)

    patch.setattr(RunMemorySaver, "__init__", needing)


def names_calls_of_a_subgraph_alike(patch: Patch) -> None:
    patch.setattr(_mapping, "lane_of", lambda namespace: namespace.partition(":")[0])


def drops_results_that_come_before_their_checkpoint(patch: Patch) -> None:
    record = committing._record

    def dropping(at: Any, run: Any, request: Any, *rest: Any, **named: Any) -> Any:
        ids = {"account_id": at.account_id, "run": run["run"]}
        kept = [
            change
            for change in request.operations
            if change.op == "put"
            or at.tx.one("seq_by_key", **ids, name=change.lane, key=change.key) is not None
        ]
        return record(at, run, request.model_copy(update={"operations": kept}), *rest, **named)

    patch.setattr(committing, "_record", dropping)


def forgets_results_that_wait_when_it_is_closed(patch: Patch) -> None:
    def forget(outbox: Outbox, run_id: str | None = None) -> None:
        del run_id
        outbox._waiting.clear()

    patch.setattr(Outbox, "flush", forget)
    patch.setattr(Outbox, "_watch", lambda _: None)


def gives_results_as_they_came(patch: Patch) -> None:
    patch.setattr(_mapping, "sorted", lambda items, **_: list(items), raising=False)


def lets_every_worker_go_on(patch: Patch) -> None:
    heads = committing._heads

    def lenient(at: Any, run: Any, request: Any) -> Any:
        return heads(at, run, request.model_copy(update={"linear": False}))

    patch.setattr(committing, "_heads", lenient)


def flags_no_second_worker(patch: Patch) -> None:
    patch.setattr(Threads, "warn_once", lambda *_: None)


def keeps_one_value_for_each_version(patch: Patch) -> None:
    change, held = _mapping.put_change, dict[tuple[str, str, Any], Any]()

    def by_version(config: Any, checkpoint: Any, *rest: Any, **named: Any) -> Any:
        thread, versions = config["configurable"]["thread_id"], checkpoint["channel_versions"]
        values = {
            channel: held.setdefault((thread, channel, versions[channel]), value)
            for channel, value in checkpoint["channel_values"].items()
        }
        return change(config, checkpoint | {"channel_values": values}, *rest, **named)

    patch.setattr(_mapping, "put_change", by_version)


def reads_the_newest_whatever_is_asked_for(patch: Patch) -> None:
    place = _mapping.checked_place_of
    patch.setattr(_mapping, "checked_place_of", lambda config: (*place(config)[:2], None))


def loses_edits(patch: Patch) -> None:
    put = RunMemorySaver.put

    def losing(self: Any, config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
        if metadata.get("source") != "update":
            return put(self, config, checkpoint, metadata, versions)
        return config

    patch.setattr(RunMemorySaver, "put", losing)


def loads_a_thread_whole_or_not_at_all(patch: Patch) -> None:
    load = RunMemorySaver.get_tuple

    def whole(self: RunMemorySaver, config: Any) -> Any:
        thread: Any = {"configurable": {"thread_id": config["configurable"]["thread_id"]}}
        assert [*self.list(thread)]
        return load(self, config)

    patch.setattr(RunMemorySaver, "get_tuple", whole)


def stores_secrets_in_clear(patch: Patch) -> None:
    patch.setattr(Encoder, "_redacted", lambda *given: (given[-1], []))
    patch.setattr(committing, "scrubbed", lambda request: request)


def stores_secrets_of_results_in_clear(patch: Patch) -> None:
    node, redacted = Encoder.node, Encoder._redacted

    def sparing(self: Encoder, channel: str, value: Any, batch: Any, *, lane: str | None = None) -> Any:
        with patch.context() as inner:
            keep = redacted if lane is not None else lambda *given: (given[-1], [])
            inner.setattr(Encoder, "_redacted", keep)
            return node(self, channel, value, batch, lane=lane)

    patch.setattr(Encoder, "node", sparing)
    patch.setattr(committing, "scrubbed", lambda request: request)


def stores_secrets_of_metadata_in_clear(patch: Patch) -> None:
    def clear(_: Encoder, metadata: Any) -> Any:
        return {name: metadata_value(value) for name, value in metadata.items()}

    patch.setattr(Encoder, "metadata", clear)
    patch.setattr(committing, "scrubbed", lambda request: request)


INTERRUPTS = reports.test_interrupts_come_back_as_what_they_were
EXPIRY = reports.test_a_thread_expires_whole_and_any_write_keeps_it
ANYWHERE = reports.test_one_class_is_blocking_and_async_and_is_made_anywhere
SUBGRAPHS = reports.test_each_call_of_a_subgraph_has_a_namespace_of_its_own
EARLY = reports.test_results_may_come_before_their_checkpoint_and_survive_without_it
WORKERS = reports.test_a_second_worker_is_flagged_or_refused
FORKS = reports.test_two_forks_with_one_version_number_keep_their_values
REPAIR = reports.test_a_thread_with_an_invalid_state_is_repaired_by_update_state
OLDER = reports.test_a_checkpoint_of_a_class_that_is_gone_leaves_the_older_ones_readable
SECRETS = reports.test_secrets_are_gone_before_anything_is_written

FAULTS: list[tuple[Callable[[Patch], None], Row, tuple[type[BaseException], ...]]] = [
    (loads_interrupts_as_dicts, INTERRUPTS, ASSERTED),
    (expires_half_a_thread, EXPIRY, ASSERTED),
    (never_expires, EXPIRY, ASSERTED),
    (expires_early, EXPIRY, ASSERTED),
    (expires_by_checkpoints_alone, EXPIRY, ASSERTED),
    (has_no_async_put, ANYWHERE, (NotImplementedError,)),
    (has_async_methods_that_only_raise, ANYWHERE, (NotImplementedError,)),
    (is_made_only_where_a_loop_runs, ANYWHERE, (RuntimeError,)),
    (names_calls_of_a_subgraph_alike, SUBGRAPHS, ASSERTED),
    (drops_results_that_come_before_their_checkpoint, EARLY, ASSERTED),
    (forgets_results_that_wait_when_it_is_closed, EARLY, ASSERTED),
    (gives_results_as_they_came, EARLY, ASSERTED),
    (lets_every_worker_go_on, WORKERS, ASSERTED),
    (flags_no_second_worker, WORKERS, ASSERTED),
    (keeps_one_value_for_each_version, FORKS, ASSERTED),
    (reads_the_newest_whatever_is_asked_for, REPAIR, ASSERTED),
    (loses_edits, REPAIR, ASSERTED),
    (loads_a_thread_whole_or_not_at_all, OLDER, (DecodingRefused,)),
    (reads_the_newest_whatever_is_asked_for, OLDER, (DecodingRefused,)),
    (stores_secrets_in_clear, SECRETS, ASSERTED),
    (stores_secrets_of_results_in_clear, SECRETS, ASSERTED),
    (stores_secrets_of_metadata_in_clear, SECRETS, ASSERTED),
]


def run(row: Row, folder: Path, request: pytest.FixtureRequest) -> None:
    """Run a row over files in ``folder``, which is made for it."""
    folder.mkdir()

    def make(**options: Any) -> RunMemorySaver:
        return RunMemorySaver(folder / "runs.db", **options)

    given: dict[str, Any] = {"row": 0, "tmp_path": folder, "saver_maker": make}
    names = inspect.signature(row).parameters
    given |= {name: request.getfixturevalue(name) for name in names if name not in {*given, "saver"}}
    if "saver" not in names:
        row(**{name: given[name] for name in names})
        return
    with make() as saver:
        row(**{name: given.get(name, saver) for name in names})


@pytest.mark.parametrize(("fault", "row", "shows"), FAULTS)
def test_a_row_fails_on_a_saver_with_its_fault(fault, row, shows, tmp_path, request, monkeypatch, caplog):
    run(row, tmp_path / "whole", request)
    caplog.clear()
    fault(monkeypatch)
    with pytest.raises(shows):
        run(row, tmp_path / "faulty", request)


@pytest.mark.parametrize(
    "line", ["from langgraph._internal import _config", "from langgraph.checkpoint.serde import _msgpack"]
)
def test_row_17_fails_on_a_package_that_needs_a_private_helper(line, tmp_path, monkeypatch):
    module = sys.modules[RunMemorySaver.__module__]
    row = reports.test_nothing_private_of_langgraph_is_needed
    row(0)
    copied = shutil.copytree(Path(inspect.getfile(RunMemorySaver)).parent, tmp_path / "copy")
    monkeypatch.setattr(module, "__file__", str(copied / "_saver.py"))
    row(0)
    (copied / "_mapping.py").write_text(f"{(copied / '_mapping.py').read_text()}\n{line}\n")
    with pytest.raises(AssertionError, match="_mapping"):
        row(0)
