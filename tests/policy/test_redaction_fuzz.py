"""Twenty thousand random nestings of secrets in honest data: none leaks, nothing else changes."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from runmemory_core.policy.redaction import MARKER, redact

CANARY = "C4naRy7"
NESTINGS = 20_000
WHOLE_NAMES = (
    "password",
    "client_secret",
    "dbPassword",
    "Set-Cookie",
    "credentials",
    "jwt",
    "user[password]",
)
STRING_NAMES = (
    "api_key",
    "accessToken",
    "X-Api-Key",
    "signing_key",
    "authorization",
    "webhook_url",
    "OPENAI_KEY",
)
HONEST_NAMES = (
    "max_tokens",
    "next_page_token",
    "author",
    "cache_key",
    "secretary",
    "password_length",
    "note",
    "id",
)
HONEST_TEXTS = (
    "",
    "ok",
    "imported invoice 312 of 400",
    "a=b",
    "Bearer of news",
    "https://x.test/a?page=2",
    "[1]",
    "{",
)
HONEST_SCALARS = (
    None,
    True,
    False,
    0,
    -1.5,
    2**60,
    "",
    'é\n\t"quoted"',
    "550e8400-e29b-41d4-a716-446655440000",
)
FORMATS = (
    "sk-{}",
    "ghp_{}",
    "xoxb-12345678-{}",
    "AIza{}000000000000",
    "Bearer {}",
    "https://hooks.slack.com/services/{}",
)

Pair = tuple[Any, Any]
"""A value, and what redaction must make of it."""


class Nest:
    """A source of random pairs; every secret in them holds the canary."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.makers: tuple[Callable[[int], Pair], ...] = (
            *(self.honest, self.members, self.items, self.members),
            *(self.json_text, self.header_pairs, self.named_value, self.credential, self.pairs_text),
        )

    def secret(self) -> str:
        return f"{CANARY}{self.random.randrange(10**9):09}zZ"

    def any(self, depth: int) -> Pair:
        return self.random.choice(self.makers)(depth - 1) if depth else self.honest(0)

    def honest(self, _: int) -> Pair:
        value = self.random.choice(HONEST_SCALARS + HONEST_TEXTS)
        return value, value

    def items(self, depth: int) -> Pair:
        pairs = [self.any(depth) for _ in range(self.random.randrange(4))]
        return [value for value, _ in pairs], [expected for _, expected in pairs]

    def members(self, depth: int) -> Pair:
        value: dict[str, Any] = {}
        expected: dict[str, Any] = {}
        for _ in range(self.random.randrange(4)):
            name = self.random.choice(WHOLE_NAMES + STRING_NAMES + HONEST_NAMES)
            if name in HONEST_NAMES:
                value[name], expected[name] = self.any(depth)
            else:
                value[name], expected[name] = self.under_secret(name, depth)
        return value, expected

    def under_secret(self, name: str, depth: int) -> Pair:
        match self.random.randrange(4):
            case 0:
                kept = self.random.choice((None, False, "", [], {}))
                return kept, kept
            case 1 if name in WHOLE_NAMES:
                value = self.any(depth)[0]
                return {"a": [value, self.secret()]}, MARKER
            case 1:
                return [self.secret(), 5], [MARKER, 5]
            case _:
                return self.secret(), MARKER

    def json_text(self, depth: int) -> Pair:
        value, expected = self.random.choice((self.members, self.items))(depth)
        indent = self.random.choice((None, 1))
        before, after = (json.dumps(side, ensure_ascii=False, indent=indent) for side in (value, expected))
        return before, after

    def header_pairs(self, _: int) -> Pair:
        return [["Accept", "*"], ["Authorization", self.secret()]], [
            ["Accept", "*"],
            ["Authorization", MARKER],
        ]

    def named_value(self, depth: int) -> Pair:
        other, expected = self.any(depth)
        label = {self.random.choice(("name", "key", "header")): "api_key"}
        return label | {"value": self.secret(), "x": other}, label | {"value": MARKER, "x": expected}

    def credential(self, _: int) -> Pair:
        text = self.random.choice(FORMATS)
        before, behind = self.random.choice((("", ""), ("see ", " there"), ("(", ")")))
        kept = text.rpartition("{}")[0]
        kept = kept if kept.endswith((" ", "/")) else ""
        return f"{before}{text.format(self.secret())}{behind}", f"{before}{kept}{MARKER}{behind}"

    def pairs_text(self, _: int) -> Pair:
        text = self.random.choice(
            ("a=1&token={}", "https://x.test/?api_key={}&b=2", "Server=a;Password={};", "pwd={}")
        )
        return text.format(self.secret()), text.format(MARKER)


def test_no_secret_leaks_nothing_honest_changes_and_a_second_pass_finds_nothing() -> None:
    nest = Nest(seed=20260)
    removals = 0
    for _ in range(NESTINGS):
        value, expected = nest.any(4)
        done = redact(copy.deepcopy(value))
        assert done.value == expected
        removals += len(done.removed)
        again = redact(done.value)
        assert (again.value, again.removed) == (expected, ())
    assert removals > NESTINGS / 4


def test_by_names_no_named_secret_leaks_and_what_is_left_is_warned_of() -> None:
    nest = Nest(seed=20261)
    for _ in range(NESTINGS // 10):
        value, expected = nest.any(4)
        done = redact(copy.deepcopy(value), mode="names")
        assert (CANARY in json.dumps(done.value)) == bool(done.warned)
        assert redact(done.value).value == expected
