"""Every rule of the manifest is held by a test that runs over every face."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.contract.faces import FACES, SERVED
from tests.contract.manifest import RULES, SERVED_ONLY

FOLDER = Path(__file__).parent

Faces = Mapping[tuple[str, str], set[str]]
"""The faces that a test with the mark of a rule runs over, by rule and test."""


class Collected:
    """A plugin that keeps what pytest would run."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items


@pytest.fixture(scope="module")
def items() -> list[pytest.Item]:
    """The tests of this folder, however few of them were asked for."""
    found = Collected()
    assert pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", str(FOLDER)], plugins=[found]) == 0
    return found.items


def faces_of(items: Iterable[pytest.Item]) -> Faces:
    faces: dict[tuple[str, str], set[str]] = defaultdict(set)
    for item in items:
        assert isinstance(item, pytest.Function)
        face = str(item.callspec.params.get("face")) if hasattr(item, "callspec") else "none"
        for mark in item.iter_markers("rule"):
            for rule in mark.args:
                faces[rule, f"{item.path.name}::{item.originalname}"].add(face)
    return faces


def not_held(faces: Faces, rules: Iterable[str]) -> list[str]:
    """The rules that no single test holds on each of the faces that they are for."""
    return [
        rule
        for rule in rules
        if not any(
            held == rule and over >= set(SERVED if rule in SERVED_ONLY else FACES)
            for (held, _), over in faces.items()
        )
    ]


def test_every_rule_is_held_by_a_test_over_every_face(items: list[pytest.Item]) -> None:
    assert not_held(faces_of(items), RULES) == []


def test_every_mark_names_a_rule_and_every_test_has_one(items: list[pytest.Item]) -> None:
    assert {rule for rule, _ in faces_of(items)} == set(RULES)
    without = {item.path.name for item in items if item.get_closest_marker("rule") is None}
    assert without == {Path(__file__).name, "test_model.py"}


def test_a_rule_that_is_held_on_some_faces_only_is_found() -> None:
    assert not_held({("RES-01", "a"): set(FACES)}, ["RES-01"]) == []
    halves: Faces = {("RES-01", "a"): set(SERVED), ("RES-01", "b"): set(FACES[:2])}
    assert not_held(halves, ["RES-01"]) == ["RES-01"]
    assert not_held({("RES-01", "a"): {"none"}}, ["RES-01", "RES-02"]) == ["RES-01", "RES-02"]
    served = next(iter(SERVED_ONLY))
    assert not_held({(served, "a"): set(SERVED)}, [served]) == []
    assert not_held({(served, "a"): set(SERVED[:1])}, [served]) == [served]


def test_rules_of_the_service_alone_say_why() -> None:
    assert SERVED_ONLY.keys() <= RULES.keys()
    assert all(reason.endswith(".") for reason in SERVED_ONLY.values())


def test_the_mark_is_used_where_tests_run_over_every_face() -> None:
    marked = {path for path in FOLDER.parent.rglob("test_*.py") if "@pytest.mark.rule(" in path.read_text()}
    assert {path.parent for path in marked} == {FOLDER}
