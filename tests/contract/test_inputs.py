"""Hostile, unlucky and very large arguments: what is said of them, and how little it takes to say it."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from runmemory_core import Client, InvalidRequest
from runmemory_core.operations.tools import SaveReply
from tests.contract.faces import Face, checkpoint_of

TOKEN = "sk-proj-" + "a1B2" * 12


def refused(client: Client, **arguments: Any) -> InvalidRequest:
    """The refusal of a save whose arguments no type checker has seen."""
    with pytest.raises(InvalidRequest) as refusal:
        client._ask(SaveReply, "save_checkpoint", {"run_id": "import", "step": "one", **arguments})
    return refusal.value


@pytest.mark.rule("ERR-05")
def test_the_name_of_an_unknown_argument_is_masked_and_cut(client: Client) -> None:
    for name, shown in [
        (TOKEN, "[removed]"),
        ("password=hunter2", "[removed]"),
        (f"{'a' * 60} {TOKEN}", "[removed]"),
        ("a" * 50_000, "a" * 40 + "…"),
        ("a" * 40, "a" * 40),
    ]:
        refusal = refused(client, **{name: 1})
        assert refusal.detail.startswith(f"{shown} is not an argument of save_checkpoint; it takes run_id")
        assert list(refusal.pointers) == [f"/{shown}"]


@pytest.mark.rule("ERR-05")
def test_of_many_causes_fifty_are_named_and_all_are_counted(face: Face, client: Client) -> None:
    before = face.dump()
    unknown = {f"a{number}": 1 for number in range(20_000)}
    tracemalloc.start()
    refusal = refused(client, **unknown)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
    assert list(refusal.pointers) == [f"/a{number}" for number in range(50)]
    assert refusal.facts["error_count"] == 20_000
    assert refusal.detail.endswith("; and 19,995 more")
    assert len(json.dumps(refusal.to_problem())) < 16_000
    assert list(refused(client, done=[{}] * 20_000).pointers) == ["/done/0"]
    few = refused(client, **{f"a{number}": 1 for number in range(6)})
    assert few.detail.endswith("; and 1 more")
    assert len(few.pointers) == 6
    assert face.dump() == before


@pytest.mark.rule("ARG-08")
def test_what_cannot_be_a_name_is_refused_with_measure_and_bound(client: Client) -> None:
    long = "is an integer of about 5,000 digits; it takes at most 200 characters: give it a shorter name"
    half = "holds half a surrogate pair; it takes Unicode text: replace or remove that character"
    for wrong, words in [(10**4_999, long), (-(10**4_999), long), ("a\ud800", half)]:
        for name in ("run_id", "step", "job", "next_step"):
            refusal = refused(client, **{name: wrong})
            assert refusal.detail == f"{name} {words}"
            assert refusal.pointers == {f"/{name}": words}
        assert refused(client, done=["a", wrong]).pointers == {"/done/1": words}
    assert client.save_checkpoint(10**199, "one").job == "1" + "0" * 199


@pytest.mark.rule("JSN-05")
def test_decimals_that_come_back_rounded_are_named(client: Client) -> None:
    text = '{"a": 0.1234567890123456789, "b": [12345678901234567.89, 1e-400], "c": 0.1, "d": 2.50}'
    taken, notice = client.save_checkpoint("import", "one", state=text).notices
    assert "taken as that object" in taken
    assert notice == (
        "state has 3 numbers finer than a double (/a, /b/0, /b/1): kept rounded; send strings to keep every digit"
    )
    assert checkpoint_of(client.resume("import")).state == json.loads(text)
    assert (
        len(client.save_checkpoint("import", "two", state='{"c": 0.1, "d": 2.50, "e": 1e300}').notices) == 1
    )
