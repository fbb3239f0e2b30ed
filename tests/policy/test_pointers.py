"""Pointers to places in a value: how they are cut, and that memory goes with the size of a value, not its square."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from runmemory_core.errors import InvalidJson
from runmemory_core.operations.calls import Call, prepare
from runmemory_core.policy.pointers import MAX_POINTER_CHARACTERS, POINTERS_SHOWN, collect, walk
from runmemory_core.policy.redaction import MAX_REPORT_CHARACTERS, redact

LONG = "k" * 20_000
MANY = 10_000
BOUND_BYTES = 20_000_000
"""Far below one pointer for each item of the values below, and far above the values."""


def save(state: dict[str, Any]) -> Call:
    return prepare("save_checkpoint", {"run_id": "r", "step": "s", "state": state}, parsed=True)


def refused(state: dict[str, Any]) -> None:
    with pytest.raises(InvalidJson):
        save(state)


@pytest.mark.parametrize(
    "work",
    [
        lambda: save({LONG: [1] * MANY + [2**60]}),
        lambda: save({LONG: [2**60] * MANY}),
        lambda: save({LONG: ["[removed]"] * MANY}),
        lambda: save({LONG[:900]: {"api_keys": ["a"] * MANY}}),
        lambda: save({LONG: {f"[removed] {number}": 1 for number in range(MANY)}}),
        lambda: refused({LONG: [1] * MANY + [float("inf")]}),
        lambda: refused({LONG: {f"a{number}": 1 for number in range(MANY)} | {"b": "\ud800"}}),
    ],
    ids=["one big integer", "big integers", "marked", "secrets", "marked keys", "infinity", "surrogate"],
)
def test_a_long_key_over_many_items_takes_memory_for_one_key(work: Callable[[], object]) -> None:
    work()
    tracemalloc.start()
    try:
        work()
        assert tracemalloc.get_traced_memory()[1] < BOUND_BYTES
    finally:
        tracemalloc.stop()


def test_fifty_places_are_shown_and_all_are_counted() -> None:
    state = save({"a": ["[removed]"] * 120}).state
    assert state is not None
    assert state.removed == (120, tuple(f"/a/{number}" for number in range(POINTERS_SHOWN)))
    (notice,) = save({"a": [2**60] * 120}).notices
    assert "120 integers beyond 2^53 (/a/0, /a/1, /a/2, /a/3, /a/4 and more)" in notice


def test_a_walk_goes_in_document_order_and_escapes_keys() -> None:
    steps = [(step.pointer, step.depth) for step in walk({"a/b": [1, {"~": {}}], "": 2}, "/state")]
    assert steps == [
        ("/state", 1),
        ("/state/a~1b", 2),
        ("/state/a~1b/0", 3),
        ("/state/a~1b/1", 3),
        ("/state/a~1b/1/~0", 4),
        ("/state/", 2),
    ]


def test_a_pointer_that_would_be_too_long_is_that_of_the_container_around() -> None:
    value = {"a": {LONG: [{"b": 1}]}, "c": [LONG]}
    assert collect(walk(value)) == (7, ("", "/a", "/c", "/c/0"))
    just_fits = "k" * (MAX_POINTER_CHARACTERS - 1)
    assert collect(walk({just_fits: 1, f"{just_fits}k": 1})) == (3, ("", f"/{just_fits}"))


def test_a_refusal_below_a_long_key_says_that_it_lies_deeper() -> None:
    with pytest.raises(InvalidJson, match=r"^/state/a holds deeper inside what is NaN") as caught:
        save({"a": {LONG: float("nan")}})
    assert list(caught.value.pointers) == ["/state/a"]


def test_a_report_of_removals_is_bounded() -> None:
    removed = redact({"k" * 900: {"api_keys": ["a"] * 1_000}}).removed
    assert sum(map(len, removed)) < MAX_REPORT_CHARACTERS + MAX_POINTER_CHARACTERS
    assert len(removed) > POINTERS_SHOWN
