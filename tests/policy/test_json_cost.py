"""That naming what is wrong with a value costs little, however large it is: work is counted, never timed."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from runmemory_core.errors import InvalidJson
from runmemory_core.operations.calls import prepare
from runmemory_core.policy import json_rules

BAD = {
    "half a surrogate pair": b'"\\ud800"',
    "an overlong integer": b"9" * 5_000,
    "an infinity": b"1e999",
    "too many levels": b"[" * 70 + b"]" * 70,
    "more levels than any parser takes": b"[" * 100_000,
}
LARGE = 220_000
"""Bytes; both this and its double hold more values than are looked at."""


def calls_in(work: Callable[[], Any]) -> int:
    """How many functions ``work`` calls, in Python and in C."""
    count = 0

    def notice(frame: FrameType, event: str, argument: object) -> None:
        del frame, argument
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(notice)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def refusal_of(body: bytes) -> InvalidJson:
    with pytest.raises(InvalidJson) as caught:
        json_rules.parse(body)
    return caught.value


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("unit", [b"1,", b"[[[[]]]],", b'{"a":1},', b'"a",'])
def test_a_place_behind_very_many_values_is_not_searched_for(name: str, unit: bytes) -> None:
    once, twice = (b'{"a":[' + unit * (size // len(unit)) + BAD[name] + b"]}" for size in (LARGE, 2 * LARGE))
    assert "in more than 50,000 values" in refusal_of(once).detail
    assert calls_in(lambda: refusal_of(twice)) < 1.1 * calls_in(lambda: refusal_of(once)) + 50


def test_a_place_within_the_bound_is_named() -> None:
    assert refusal_of(b"[" + b"1," * 49_000 + b'{"a":"\\ud800"}]').pointers.keys() == {"/49000/a"}


@contextmanager
def at_most(size_bytes: int) -> Generator[None]:
    """Fail when more memory than that is needed at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size_bytes
    finally:
        tracemalloc.stop()


def test_a_long_key_is_not_copied_for_every_value_below_it() -> None:
    body = b'{"' + b"k" * 100_000 + b'":[' + b"1," * 20_000 + b'"\\ud800"]}'
    with at_most(10_000_000):
        refusal_of(body)


def test_nor_for_every_large_integer() -> None:
    text = json.dumps({"k" * 100_000: [2**60] * 1_000}, separators=(",", ":"))
    with at_most(10_000_000):
        assert len(json_rules.big_integers(text)) == 1_000


@pytest.mark.parametrize("item", [b'"[removed]",', b"12345678901234567890,"])
def test_a_long_key_is_not_copied_for_every_place_that_a_save_names(item: bytes) -> None:
    state = b'{"' + b"k" * 100_000 + b'":[' + item * 1_000 + b"1]}"
    with at_most(10_000_000):
        call = prepare("save_checkpoint", {"run_id": "r", "step": "s", "state": json_rules.parse(state)})
    assert call.state is not None
    assert all(len(pointer) <= 1_024 for pointer in call.state.removed)
    assert sum(map(len, call.notices)) < 10_000
