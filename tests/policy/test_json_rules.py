"""What JSON is accepted, what is refused, and that the refusal names the right place."""

from __future__ import annotations

import enum
import json
import math
import random
import struct
from collections import OrderedDict, defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from runmemory_core import errors
from runmemory_core.policy import json_rules

HALF_PAIR = chr(0xD800)


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Point(NamedTuple):
    x: int
    y: int


def nested(depth: int, kind: str = "[]") -> str:
    return kind[0] * depth + kind[1] * depth


KEPT_TEXTS = [
    '{"a":"\\u0000"}',
    '{"a":1.0,"b":-0.0,"c":0}',
    '{"a":true,"b":1,"c":null,"d":"é😀"}',
    '{"a":9007199254740993}',
    f'{{"a":{"9" * 4000}}}',
    f'{{"a":-{"9" * 4000}}}',
    nested(64),
    "[]",
    '"x"',
    '{"":{"~/":[0.5]}}',
]


@pytest.mark.parametrize("text", KEPT_TEXTS, ids=lambda text: text[:20])
def test_a_compact_text_comes_back_byte_for_byte(text: str) -> None:
    value = json_rules.parse(text)
    assert json_rules.canonical(value).text == json_rules.write(value) == text


def test_bytes_and_text_parse_alike_and_the_last_duplicate_key_wins() -> None:
    assert json_rules.parse(b' {"a": 1, "a": {"b": 2}} ') == {"a": {"b": 2}}
    assert json_rules.parse('{"a":{"c":1},"a":{"b":2}}') == {"a": {"b": 2}}


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('{"a":[0,{"b":NaN}]}', "/a/1/b"),
        ('{"a":Infinity}', "/a"),
        ('{"a":[-Infinity]}', "/a/0"),
        ('{"a":{"b/c~d":[1,1e999]}}', "/a/b~1c~0d/1"),
        ('{"a":-1e400}', "/a"),
        ('{"a":["x","\\ud800"]}', "/a/1"),
        ('{"a":["\\udc00\\ud800"]}', "/a/0"),
        (f'{{"a":["{HALF_PAIR}"]}}', "/a/0"),
        ('{"a":{"\\ud800":1}}', "/a"),
        (f'{{"a":{{"b":{"9" * 4001}}}}}', "/a/b"),
        (f'{{"a":{{"b":-{"9" * 4001}}}}}', "/a/b"),
        (f"[1,{'9' * 5000}]", "/1"),
        (f"[1,{'1' * 500_000}]", "/1"),
        (nested(65), "/0" * 64),
        ('{"a":' * 65 + "1" + "}" * 65, "/a" * 64),
        (nested(300), "/0" * 64),
        ('[1,{"x":"]","y/" :' + nested(100_000), "/1/y~1" + "/0" * 62),
        ("[[]," * 50_000, "/1" * 63 + "/0"),
        (f'{{"a":[-{"9" * 4000},NaN]}}', "/a/1"),
    ],
    ids=lambda value: value[:20],
)
def test_a_refused_text_names_the_place(text: str, pointer: str) -> None:
    with pytest.raises(errors.InvalidJson) as caught:
        json_rules.parse(text)
    assert list(caught.value.pointers) == [pointer]
    with pytest.raises(errors.InvalidJson) as caught:
        json_rules.parse(text, field="/state")
    assert list(caught.value.pointers) == [f"/state{pointer}"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{} x",
        "[1,]",
        "{'a':1}",
        "[01]",
        '["\x01"]',
        "nul",
        b"\xef\xbb\xbf{}",
        b'{"a":"\xff"}',
        b'"\xed\xa0\x80"',
        "[",
    ],
)
def test_a_text_that_is_not_json_is_malformed(body: bytes | str) -> None:
    with pytest.raises(errors.MalformedBody):
        json_rules.parse(body)


def test_an_envelope_may_be_deeper_than_a_state() -> None:
    body = f'{{"state":{nested(64)}}}'
    state = json_rules.parse(body, max_depth=json_rules.MAX_DEPTH + 1)["state"]
    assert json_rules.canonical(state, pointer="/state").text == nested(64)
    with pytest.raises(errors.InvalidJson):
        json_rules.parse(body)


@pytest.mark.parametrize(
    ("value", "pointer", "problem"),
    [
        ({"a": [math.nan]}, "/a/0", "NaN"),
        ({"a": -math.inf}, "/a", "NaN"),
        ({"a": {"b": (1, 2)}}, "/a/b", "tuple"),
        ({"a": Point(1, 2)}, "/a", "Point"),
        ({"a": {1, 2}}, "/a", "set"),
        ({"a": b"x"}, "/a", "bytes"),
        ({"a": datetime(2026, 1, 1, tzinfo=UTC)}, "/a", "datetime"),
        ({"a": Decimal(1)}, "/a", "Decimal"),
        ({"a": {1: 2}}, "/a", "key of type int"),
        ({"a": {True: 2}}, "/a", "key of type bool"),
        ({"a": {None: 2, "None": 3}}, "/a", "key of type NoneType"),
        ({"a": {1: 2, "1": 2}}, "/a", "key of type int"),
        ({"a": HALF_PAIR}, "/a", "surrogate"),
        ({"a": {HALF_PAIR: 1}}, "/a", "surrogate"),
        ({"a": 10**4000}, "/a", "about 4,001 digits"),
        ({"a": [-(10**5000)]}, "/a/0", "about 5,001 digits"),
        ({"x~y": {"/": ()}}, "/x~0y/~1", "tuple"),
    ],
    ids=range(17),
)
def test_a_python_value_json_cannot_hold_is_refused_by_place(value: Any, pointer: str, problem: str) -> None:
    with pytest.raises(errors.InvalidJson) as caught:
        json_rules.canonical(value, pointer="/state")
    assert list(caught.value.pointers) == [f"/state{pointer}"]
    assert problem in caught.value.detail


def test_a_value_that_contains_itself_or_is_very_deep_is_refused() -> None:
    itself: list[Any] = []
    itself.append(itself)
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    for value in (itself, deep, {"a": itself}):
        with pytest.raises(errors.InvalidJson, match="nested over 64"):
            json_rules.canonical(value)


def test_subclasses_that_come_back_equal_are_kept() -> None:
    value: dict[str, Any] = OrderedDict(a=defaultdict(list, b=[Level.HIGH]), c=Colour.RED)
    kept = json_rules.canonical(value)
    assert kept == ('{"a":{"b":[3]},"c":"red"}', {"a": {"b": [3]}, "c": "red"})
    assert type(kept.value) is dict


def test_the_copy_shares_nothing_with_the_value() -> None:
    value: dict[str, Any] = {"a": [{"b": []}]}
    copy = json_rules.canonical(value).value
    value["a"][0]["b"] = ["changed"]
    assert copy == {"a": [{"b": []}]}


def test_every_finite_double_comes_back_exactly() -> None:
    source = random.Random(7)
    doubles: list[float] = [struct.unpack("d", source.randbytes(8))[0] for _ in range(20_000)]
    doubles = [number for number in doubles if math.isfinite(number)]
    kept = json_rules.canonical(doubles)
    assert [number.hex() for number in kept.value] == [number.hex() for number in doubles]


def test_a_refusal_never_shows_the_value() -> None:
    for text in ('{"a":"hunter2 \\ud800"}', '{"a":"hunter2', '{"a":hunter2}'):
        with pytest.raises(errors.RunMemoryError) as caught:
            json_rules.parse(text)
        assert "hunter2" not in json.dumps(caught.value.to_problem())


def test_a_refusal_shows_no_secret_that_is_a_key_or_stands_below_one() -> None:
    key = "sk-ant-Aa1Bb2Cc3Dd4Ee5Ff6Gg7Hh8"
    for value, pointer in [
        ({"a": {key: {"b": math.nan}}}, "/a/[removed]/b"),
        ({"passwords": {"hunter2": [math.nan]}}, "/passwords"),
    ]:
        with pytest.raises(errors.InvalidJson) as caught:
            json_rules.canonical(value)
        assert list(caught.value.pointers) == [pointer]


def test_integers_beyond_a_double_are_listed() -> None:
    value = {"a": [2**53, 2**53 + 1, True], "b/": -(2**60), "c": 1e300, "d": f":{2**60}", "e": [-(2**53) - 1]}
    found = json_rules.big_integers(json_rules.write(value))
    assert [json_rules.pointer_of(path) for path in found] == ["/a/1", "/b~1", "/e/0"]
    assert json_rules.big_integers(json_rules.write({"d": f":{2**60}", "e": -(2**53), "f": 0.1 + 0.2})) == []


def test_a_text_that_only_a_spent_stack_found_too_deep_is_pointed_at_whole() -> None:
    refusal = json_rules._find_depth('{"a": [1, {"b": 2}]}', "/state", 64)
    assert list(refusal.pointers) == ["/state"]
