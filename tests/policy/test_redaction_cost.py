"""That redaction costs in proportion to the size, whatever is sent: work is counted, never timed."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from types import FrameType
from typing import Any, cast

import pytest

from runmemory_core.policy import (
    nested_json,
    redaction,
    secret_formats,
    secret_lines,
    secret_names,
    secret_pairs,
    secret_shapes,
    secret_survey,
)

MODULES = (
    *(nested_json, redaction, secret_formats, secret_lines, secret_names),
    *(secret_pairs, secret_shapes, secret_survey),
)
DOUBLE = 2.4
"""The most that work may grow when the size doubles."""
UNITS = [
    *(
        "-----BEGIN",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqh",
        "-",
        " ",
        "\n",
    ),
    *(
        "sk-",
        "sk_",
        "sk-a",
        "ghp_",
        "_",
        "a_",
        "A",
        "AKIA",
        "AKIAAAAAAAAAAAAA",
        "eyJ",
        "eyJaaaaaaaa.",
        "eyJ.",
    ),
    *(
        "Bearer ",
        "Bearer\t",
        "earer a",
        "basic aaaaaaaa ",
        "://",
        "://a:",
        "://a:b",
        "://a:b@",
        "@",
        ":",
        "/",
    ),
    *(
        "?a=",
        "&token=a",
        "--a=",
        "=",
        "A=",
        "A=\n",
        "TOKEN='",
        "a=b;",
        ";",
        "#",
        '"password":"',
        '\\"a\\":\\"',
    ),
    *('":"', '":', '"', '\\"', "\\", "'a': '", "{", "[", "[ ", "[\\n", '{"a":', "hooks.slack.com/services/"),
    *(
        "/webhooks/12345/",
        ":AA",
        "12345678:AA",
        "xoxb-",
        "hvs.",
        "SG.",
        "M" * 30,
        "M.",
        "key",
        "é",
        "--a ",
        "--password 1 ",
        "curl -u a:b ",
        "a: ",
        "token: 1\n",
        "X-Api-Key: a\n",
        "\n ",
        "x",
        "$",
        "1",
    ),
]


# --- counting the steps of a pattern ------------------------------------------------------------------

PARSER: Any = importlib.import_module("re._parser")
CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda character: character.isalnum() or character == "_",
}


def count_steps(pattern: re.Pattern[str], text: str) -> int:
    """The characters and branches tried by a search for all matches."""
    return _Search(text).find_all(PARSER.parse(pattern.pattern, pattern.flags & ~re.DEBUG))


def _is_in(items: list[Any], character: str) -> bool:
    negated = str(items[0][0]) == "NEGATE"
    return any(_accepts(str(kind), argument, character) for kind, argument in items[negated:]) != negated


def _accepts(kind: str, argument: Any, character: str) -> bool:
    match kind:
        case "LITERAL":
            return ord(character) == argument
        case "NOT_LITERAL":
            return ord(character) != argument
        case "RANGE":
            return argument[0] <= ord(character) <= argument[1]
        case "IN":
            return _is_in(argument, character)
        case "ANY":
            return True
        case "CATEGORY":
            name = str(argument)
            positive = name.replace("_NOT_", "_")
            return CATEGORIES[positive](character) != (positive != name)
        case _:
            raise NotImplementedError(kind)


class _Search:
    """A slow backtracking matcher that counts its steps.

    It runs the parse tree of Python's own regex parser with the semantics of its engine, but without the
    engine's shortcuts, so it can only overstate the work.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps = 0

    def find_all(self, tree: Any) -> int:
        place = 0
        while place <= len(self.text):
            self.steps += 1
            end = next(self.sequence(list(tree), place), None)
            place = end if end is not None and end > place else place + 1
        return self.steps

    def sequence(self, parts: list[Any], place: int) -> Iterator[int]:
        if not parts:
            yield place
            return
        kind, argument = parts[0]
        for middle in self.one(str(kind), argument, place):
            yield from self.sequence(parts[1:], middle)

    def one(self, kind: str, argument: Any, place: int) -> Iterator[int]:
        match kind:
            case "SUBPATTERN":
                yield from self.sequence(list(argument[3]), place)
            case "ATOMIC_GROUP":
                yield from self.first(argument, place)
            case "BRANCH":
                self.steps += len(argument[1])
                yield from chain.from_iterable(self.sequence(list(choice), place) for choice in argument[1])
            case "ASSERT" | "ASSERT_NOT":
                direction, inner = argument
                start = place if direction > 0 else place - inner.getwidth()[0]
                found = start >= 0 and next(self.sequence(list(inner), start), None) is not None
                if found == (kind == "ASSERT"):
                    yield place
            case "AT":
                self.steps += 1
                if place == (0 if "BEGINNING" in str(argument) else len(self.text)):
                    yield place
            case "POSSESSIVE_REPEAT" | "MAX_REPEAT":
                yield from self.repeat(kind, argument, place)
            case _:
                self.steps += 1
                if place < len(self.text) and _accepts(kind, argument, self.text[place]):
                    yield place + 1

    def first(self, inner: Any, place: int) -> Iterator[int]:
        end = next(self.sequence(list(inner), place), None)
        if end is not None:
            yield end

    def repeat(self, kind: str, argument: Any, place: int) -> Iterator[int]:
        least, most, inner = argument
        is_fixed = inner.getwidth()[0] == inner.getwidth()[1]
        if kind == "MAX_REPEAT" and not is_fixed:
            assert most == 1, "a repeat of something that can match in several ways is a risk by itself"
            yield from self.sequence(list(inner), place)
            yield from (place for _ in range(1 - least))
            return
        ends = [place]
        while len(ends) <= int(most) and (end := next(self.first(inner, ends[-1]), None)) is not None:
            if end == ends[-1]:
                break
            ends.append(end)
        if kind == "POSSESSIVE_REPEAT":
            ends = ends[-1:] if len(ends) > least else []
        for end in reversed(ends[int(least) :] if kind == "MAX_REPEAT" else ends):
            self.steps += 1
            yield end


# --- the tests ----------------------------------------------------------------------------------------


def patterns() -> list[re.Pattern[str]]:
    def within(value: object) -> Iterator[re.Pattern[str]]:
        if isinstance(value, re.Pattern):
            yield cast("re.Pattern[str]", value)
        elif isinstance(value, tuple):
            for item in value:
                yield from within(item)

    seen: set[re.Pattern[str]] = set()
    for module in MODULES:
        seen.update(within(tuple(vars(module).values())))
    return sorted(seen, key=lambda pattern: pattern.pattern)


@pytest.mark.parametrize("pattern", patterns(), ids=range(len(patterns())))
def test_a_pattern_searches_in_proportion_to_the_text(pattern: re.Pattern[str]) -> None:
    for unit in UNITS:
        # A bounded repeat may look quadratic until its bound, so a suspicious unit is tried far beyond it.
        for size in (120, 1500):
            once, twice = (count_steps(pattern, (unit * size)[: size * times]) for times in (1, 2))
            if twice <= DOUBLE * once:
                break
        else:
            pytest.fail(f"{unit!r}: {once} steps, then {twice}")


def test_the_count_shows_a_quadratic_pattern() -> None:
    pattern = re.compile(r"sk-[a-z-]*[0-9]")
    once, twice = (count_steps(pattern, "sk-" * size) for size in (50, 100))
    assert twice > 3 * once


def count_calls(value: Any) -> int:
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    secret_names._judge.cache_clear()
    sys.setprofile(count)
    try:
        redaction.redact(value)
    finally:
        sys.setprofile(None)
    return calls


def repeated(unit: str) -> Callable[[int], Any]:
    return lambda size: {"text": unit * size}


def in_json(unit: str) -> Callable[[int], Any]:
    return lambda size: {"text": json.dumps({"pin": 1, "b": unit * size})}


def cut_short(unit: str) -> Callable[[int], Any]:
    return lambda size: {"text": '{"password":"abc",' + unit * size}


def numbered(make: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda size: {"list": [make(number) for number in range(size)]}


def nested(size: int) -> Any:
    value: Any = {"password": "a"}
    for level in range(size):
        value = {f"k{level}": value, "pin": 1}
    return value


CRAFTED: dict[str, Callable[[int], Any]] = {
    **{f"{make.__name__} {unit!r}": make(unit) for unit in UNITS for make in (repeated, in_json, cut_short)},
    "distinct names": lambda size: {f"name{number}_token": "a" for number in range(size)},
    "credentials as keys": lambda size: {f"sk-{number:020}": {"pin": 1} for number in range(size)},
    "members of a secret": lambda size: {"api_key": {f"k{number}": "a" for number in range(size)}},
    "short credentials": numbered(lambda number: f"sk-{number:020}"),
    "short pairs": numbered(lambda number: f"token={number}"),
    "short json": numbered(lambda number: f'{{"password":"{number}"}}'),
    "short json with other names": numbered(lambda number: f'{{"password{number}":"a"}}'),
    "header pairs": lambda size: {"h": [["Authorization", "a"]] * size},
    "named values": numbered(lambda number: {"name": f"password{number}", "value": "a"}),
    "repeated members": lambda size: {"t": "{" + ",".join(['"password":"a"'] * size) + "}"},
    "deep value": nested,
    "deep json": lambda size: {"t": json.dumps(nested(size))},
    "deep lists in json": lambda size: {"t": "[" * size + '{"password":"a"}' + "]" * size},
}


@pytest.mark.parametrize("make", list(CRAFTED.values()), ids=range(len(CRAFTED)))
def test_a_crafted_value_costs_calls_in_proportion_to_its_size(make: Callable[[int], Any]) -> None:
    count_calls(make(10))
    once, twice = (count_calls(make(size)) for size in (150, 300))
    assert twice <= DOUBLE * once


def test_an_honest_value_is_not_walked() -> None:
    rows = [
        {"id": number, "text": "imported invoice", "max_tokens": 5, "done": True} for number in range(1000)
    ]
    calls = count_calls({"rows": rows, "next_page_token": "a"})
    assert calls < 2 * len(rows)


def test_names_long_and_glued_cost_in_proportion_to_their_length() -> None:
    def cost(names: Iterable[str]) -> int:
        return count_calls(dict.fromkeys(names, 1))

    once, twice = (cost(["keytoken" * size]) for size in (4, 8))
    assert twice <= 2 * DOUBLE * once
    assert cost(["passwordkeytoken" * 100]) < once
