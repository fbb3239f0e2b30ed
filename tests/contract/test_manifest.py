"""Every rule of the manifest is held by a test."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.contract.manifest import RULES

TESTS = Path(__file__).parents[1]


def held_rules() -> set[str]:
    """The ids in the rule marks of all tests."""
    marks = [
        node
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.rule"
    ]
    return {str(ast.literal_eval(argument)) for mark in marks for argument in mark.args}


def test_every_rule_has_a_test_and_every_test_a_rule() -> None:
    assert held_rules() == set(RULES)
