"""The rows of what users reported notice a saver that has the fault: each is run on one made faulty on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runmemory_langgraph import RunMemorySaver, _decoding, _mapping
from runmemory_langgraph._encoding import Batch, Encoder
from runmemory_langgraph._outbox import Outbox
from tests.adapters import test_langgraph_reports as reports

Patch = pytest.MonkeyPatch
node, query = Encoder.node, RunMemorySaver._query


def sends_everything_again(patch: Patch) -> None:
    patch.setattr(Batch, "to_send", lambda batch: dict(batch.texts))
    patch.setattr(Batch, "find", lambda *_: None)


def sends_each_result_apart(patch: Patch) -> None:
    patch.setattr(Outbox, "linger", Outbox.send)


def lists_no_pending_writes(patch: Patch) -> None:
    patch.setattr(_mapping, "pending_writes", lambda *_, **__: [])


def cuts_at_a_nul(patch: Patch) -> None:
    def cut(value: Any) -> Any:
        match value:
            case str():
                return value.partition("\0")[0]
            case list():
                return [cut(item) for item in value]
            case _:
                return value

    patch.setattr(
        Encoder, "node", lambda self, name, value, *rest, **at: node(self, name, cut(value), *rest, **at)
    )


def saves_what_cannot_be_saved_as_text(patch: Patch) -> None:
    typed = Encoder._typed

    def lenient(self: Any, channel: str, index: Any, value: Any) -> Any:
        try:
            return typed(self, channel, index, value)
        except TypeError:
            return typed(self, channel, index, repr(value))

    patch.setattr(Encoder, "_typed", lenient)


def builds_whatever_is_named(patch: Patch) -> None:
    def trusting(asked: Any, _: Any) -> Any:
        return frozenset((module, name) for _, module, name, _ in asked)

    patch.setattr(_decoding, "_judged", trusting)


def ignores_before(patch: Patch) -> None:
    patch.setattr(RunMemorySaver, "_query", lambda self, config, wanted, _: query(self, config, wanted, None))


FAULTS: list[tuple[Callable[[Patch], None], Callable[..., None], tuple[str, ...]]] = [
    (sends_everything_again, reports.test_a_channel_that_did_not_change_is_not_sent_again, ()),
    (sends_each_result_apart, reports.test_a_fan_out_of_twenty_takes_six_calls_at_most, ("monkeypatch",)),
    (lists_no_pending_writes, reports.test_a_limit_bounds_the_rows_and_never_what_is_in_them, ()),
    (lists_no_pending_writes, reports.test_a_list_brings_pending_writes, ()),
    (cuts_at_a_nul, reports.test_a_nul_character_is_kept, ()),
    (saves_what_cannot_be_saved_as_text, reports.test_what_cannot_be_saved_is_named_at_put_time, ()),
    (builds_whatever_is_named, reports.test_bytes_in_the_store_run_nothing_on_load, ("tmp_path",)),
    (ignores_before, reports.test_filter_namespace_and_before_mean_one_thing, ()),
]


@pytest.mark.parametrize(("fault", "row", "needs"), FAULTS)
def test_a_row_fails_on_a_saver_with_its_fault(fault, row, needs, tmp_path, monkeypatch):
    given = {"monkeypatch": monkeypatch, "tmp_path": tmp_path}
    options = {name: given[name] for name in needs}
    with RunMemorySaver(tmp_path / "whole.db") as saver:
        row(0, saver, **options)
    fault(monkeypatch)
    with (
        RunMemorySaver(tmp_path / "faulty.db") as saver,
        pytest.raises((AssertionError, pytest.fail.Exception)),
    ):
        row(0, saver, **options)
