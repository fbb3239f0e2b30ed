"""The rows of what users reported notice a saver that has the fault: each is run on one made faulty on purpose."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpcore
import pytest

from runmemory_core import RunMemoryError, StateTooLarge, Unavailable, parts
from runmemory_core.client import StoreClient, _connect
from runmemory_core.engine import committing, fetching
from runmemory_core.policy.admission import run_state_too_large
from runmemory_core.store._queries import queries
from runmemory_core.transports import http
from runmemory_langgraph import DecodingRefused, RunMemorySaver, _decoding, _mapping
from runmemory_langgraph._encoding import Batch, Encoder
from runmemory_langgraph._options import Done
from runmemory_langgraph._outbox import Outbox
from tests.adapters import test_langgraph_graphs as graphs
from tests.adapters import test_langgraph_reports as reports
from tests.adapters.test_langgraph_outage import Place

Patch = pytest.MonkeyPatch
node, query = Encoder.node, RunMemorySaver._query


def keeps_every_checkpoint(patch: Patch) -> None:
    patch.setattr(committing, "trim_lane", lambda *_: 0)


def saves_every_list_whole(patch: Patch) -> None:
    patch.setattr(Encoder, "_is_taken_apart", lambda *_: False)


def collects_no_parts(patch: Patch) -> None:
    patch.setattr(committing, "collect_parts", lambda *_: 0)


def sends_everything_again(patch: Patch) -> None:
    patch.setattr(Batch, "to_send", lambda batch: dict(batch.texts))
    patch.setattr(Batch, "find", lambda *_: None)


def asks_for_each_row_apart(patch: Patch) -> None:
    entries_of = fetching._entries

    def one_by_one(at: Any, groups: Any, **options: Any) -> Any:
        entries: list[Any] = []
        texts: dict[str, str] = {}
        for run, run_id, seqs in groups:
            for seq in seqs:
                found, needed = entries_of(at, [(run, run_id, [seq])], **options)
                entries += found
                texts |= needed
        return entries, texts

    patch.setattr(fetching, "_entries", one_by_one)


def sends_each_result_apart(patch: Patch) -> None:
    patch.setattr(Outbox, "linger", Outbox.send)


def looks_before_it_saves(patch: Patch) -> None:
    commit = RunMemorySaver._commit

    def looking(self: Any, run_id: str, *rest: Any) -> Any:
        self._store.fetch(run_id)
        return commit(self, run_id, *rest)

    patch.setattr(RunMemorySaver, "_commit", looking)


def asks_for_each_ancestor_apart(patch: Patch) -> None:
    chain = StoreClient.chain
    patch.setattr(StoreClient, "chain", lambda *given, **named: chain(*given, **named | {"limit": 1}))


def lists_no_pending_writes(patch: Patch) -> None:
    patch.setattr(_mapping, "pending_writes", lambda *_, **__: [])


def cuts_nothing_into_chunks(patch: Patch) -> None:
    patch.setattr(parts, "of_text", lambda text, texts: {"p": parts._add(text, texts)})


def knows_no_cap(patch: Patch) -> None:
    patch.setattr(_mapping, "_check_size", lambda *_: None)
    patch.setattr(committing, "check_states", lambda *_: None)


def names_no_channel_at_the_cap(patch: Patch) -> None:
    patch.setattr(
        _mapping, "run_state_too_large", lambda size, limit, _: run_state_too_large(size, limit, {})
    )


def connects_only_once(patch: Patch) -> None:
    opener = http._opener

    def once(*given: Any) -> Any:
        open_one = opener(*given)

        def open_one_for_good() -> Any:
            opened: Any = open_one()
            backend = opened._transport._pool._network_backend
            connect, made = backend.connect_tcp, []

            def connect_once(*given: Any, **named: Any) -> Any:
                if made:
                    raise httpcore.ConnectError("the connection is closed")
                made.append(connect(*given, **named))
                return made[0]

            backend.connect_tcp = connect_once
            return opened

        return open_one_for_good

    patch.setattr(http, "_opener", once)


def sets_up_whatever_happens(patch: Patch) -> None:
    setup = RunMemorySaver.setup

    def quiet(self: Any) -> Any:
        try:
            return setup(self)
        except RunMemoryError:
            return Done()

    patch.setattr(RunMemorySaver, "setup", quiet)


def saves_elsewhere_when_it_must(patch: Patch) -> None:
    store_of = _connect._store

    def some_store(where: Any) -> Any:
        try:
            return store_of(where)
        except RunMemoryError:
            return store_of(replace(where, url=where.url.replace("/x.db", ".db")))

    patch.setattr(_connect, "_store", some_store)


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


def builds_only_what_is_allowed_once_anything_is(patch: Patch) -> None:
    judged = _decoding._judged

    def strict(asked: Any, allow: Any) -> Any:
        for _, module, name, _ in asked if allow else ():
            if (module, name) not in allow:
                _decoding._refuse(module, name, "it is not in allow")
        return judged(asked, allow)

    patch.setattr(_decoding, "_judged", strict)


def warns_of_what_is_not_allowed(patch: Patch) -> None:
    judged = _decoding._judged

    def warning(asked: Any, allow: Any) -> Any:
        for _, module, name, _ in asked:
            if (module, name) not in allow:
                logging.getLogger("runmemory").warning("%s.%s is not in allow", module, name)
        return judged(asked, allow)

    patch.setattr(_decoding, "_judged", warning)


def builds_whatever_is_named(patch: Patch) -> None:
    def trusting(asked: Any, _: Any) -> Any:
        return frozenset((module, name) for _, module, name, _ in asked)

    patch.setattr(_decoding, "_judged", trusting)


def ignores_before(patch: Patch) -> None:
    patch.setattr(RunMemorySaver, "_query", lambda self, config, wanted, _: query(self, config, wanted, None))


def pastes_the_key_into(condition: str) -> Callable[[Patch], None]:
    def pastes_the_filter_key(patch: Patch) -> None:
        matching = fetching._matching

        def pasting(at: Any, request: Any, run: Any) -> Any:
            text, name = queries("sqlite"), "adapter_checkpoints"
            pasted = "".join(
                f"\nAND '{value}' = {condition.replace('KEY', key)}"
                for key, value in request.metadata.items()
            )
            with pytest.MonkeyPatch.context() as inner:
                inner.setitem(text, name, text[name].replace("\nORDER BY", f"{pasted}\nORDER BY"))
                return matching(at, request.model_copy(update={"metadata": {}}), run)

        patch.setattr(fetching, "_matching", pasting)

    return pastes_the_filter_key


Fault = Callable[[Patch], None]
FAILS: tuple[type[BaseException], ...] = (AssertionError, pytest.fail.Exception)


def case(fault: Fault, row: Callable[..., None], *, fails: Any = FAILS, **options: Any) -> Any:
    """A row that ``fails`` so on a saver with the fault; ``options`` are the row's own parameters."""
    return pytest.param(fault, row, options, fails, id=f"{row.__name__}-{fault.__name__}")


growth = reports.test_a_conversation_takes_bytes_for_what_is_new_and_retention_bounds_it
FAULTS = [
    case(keeps_every_checkpoint, growth),
    case(saves_every_list_whole, growth),
    case(collects_no_parts, growth),
    case(sends_everything_again, reports.test_a_channel_that_did_not_change_is_not_sent_again),
    case(asks_for_each_row_apart, reports.test_a_list_takes_a_bounded_number_of_queries_whatever_its_length),
    case(
        sends_each_result_apart,
        reports.test_a_line_of_ten_nodes_takes_a_call_for_each_superstep_at_most,
        durability="sync",
        most=13,
    ),
    case(
        looks_before_it_saves,
        reports.test_a_line_of_ten_nodes_takes_a_call_for_each_superstep_at_most,
        durability="exit",
        most=2,
    ),
    case(sends_each_result_apart, reports.test_a_fan_out_of_twenty_takes_six_calls_at_most),
    case(
        asks_for_each_ancestor_apart, graphs.test_a_delta_channel_is_rebuilt_from_its_ancestors_in_few_calls
    ),
    case(lists_no_pending_writes, reports.test_a_limit_bounds_the_rows_and_never_what_is_in_them),
    case(
        cuts_nothing_into_chunks,
        reports.test_a_large_value_is_kept_and_one_over_the_cap_named,
        fails=StateTooLarge,
    ),
    case(knows_no_cap, reports.test_a_large_value_is_kept_and_one_over_the_cap_named),
    case(names_no_channel_at_the_cap, reports.test_a_large_value_is_kept_and_one_over_the_cap_named),
    case(connects_only_once, reports.test_a_saver_goes_on_after_its_service_was_restarted, fails=Unavailable),
    case(sets_up_whatever_happens, reports.test_a_store_that_is_not_there_is_told_at_setup),
    case(saves_elsewhere_when_it_must, reports.test_a_store_that_is_not_there_is_told_at_setup),
    case(cuts_at_a_nul, reports.test_a_nul_character_is_kept),
    case(saves_what_cannot_be_saved_as_text, reports.test_what_cannot_be_saved_is_named_at_put_time),
    case(
        builds_only_what_is_allowed_once_anything_is,
        reports.test_allowing_one_class_blocks_no_other_and_warns_of_none,
        fails=DecodingRefused,
    ),
    case(warns_of_what_is_not_allowed, reports.test_allowing_one_class_blocks_no_other_and_warns_of_none),
    case(builds_whatever_is_named, reports.test_bytes_in_the_store_run_nothing_on_load),
    *(
        case(
            pastes_the_key_into(condition),
            reports.test_a_hostile_filter_key_matches_nothing_and_harms_nothing,
            key=key,
        )
        for key, condition in [
            ("x' OR '1'='1", "c.metadata ->> 'KEY'"),
            ('a") OR 1=1 --', """json_extract(c.metadata, "$.KEY")"""),
            ("$.source", "json_extract(c.metadata, 'KEY')"),
            ("source') --", "json_extract(c.metadata, '$.KEY')"),
        ]
    ),
    case(ignores_before, reports.test_filter_namespace_and_before_mean_one_thing),
    case(lists_no_pending_writes, reports.test_a_list_brings_pending_writes),
]


def run_on_a_saver(row: Callable[..., None], folder: Path, **options: Any) -> None:
    """Run a row on stores of its own, with what it asks for by name."""
    folder.mkdir()

    def saver_of(**options: Any) -> RunMemorySaver:
        return RunMemorySaver(folder / "saver.db", **options)

    with ExitStack() as stack:
        makers: dict[str, Callable[[], Any]] = {
            "row": lambda: 0,
            "tmp_path": lambda: folder,
            "monkeypatch": lambda: stack.enter_context(pytest.MonkeyPatch.context()),
            "place": lambda: stack.enter_context(closing(Place(folder))),
            "saver": lambda: stack.enter_context(saver_of()),
            "saver_maker": lambda: saver_of,
        }
        asked = inspect.signature(row).parameters.keys() - options.keys()
        row(**options, **{name: makers[name]() for name in asked})


@pytest.mark.parametrize(("fault", "row", "options", "fails"), FAULTS)
def test_a_row_fails_on_a_saver_with_its_fault(fault, row, options, fails, tmp_path, monkeypatch, caplog):
    if "caplog" in inspect.signature(row).parameters:
        options = options | {"caplog": caplog}
    run_on_a_saver(row, tmp_path / "whole", **options)
    fault(monkeypatch)
    with pytest.raises(fails):
        run_on_a_saver(row, tmp_path / "faulty", **options)
