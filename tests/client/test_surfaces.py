"""The blocking and the async clients have one surface, and it is the table of operations."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from runmemory_core import client
from runmemory_core.operations import OPERATIONS

PAIRS = [
    (client.Client, client.AsyncClient),
    (client.StoreClient, client.AsyncStoreClient),
    (client.Run, client.AsyncRun),
]


def public(surface: type[Any]) -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(surface) if not name.startswith("_")}


def blocking(annotation: str) -> str:
    return annotation.replace("Async", "")


def signature(member: Any) -> list[tuple[str, Any, Any, str]]:
    found = inspect.signature(member)
    shown = [(p.name, p.kind, p.default, blocking(str(p.annotation))) for p in found.parameters.values()]
    return [*shown, ("return", None, None, blocking(str(found.return_annotation)))]


@pytest.mark.parametrize(("plain", "awaited"), PAIRS)
def test_both_have_the_same_names_arguments_and_words(plain: type[Any], awaited: type[Any]) -> None:
    assert public(plain).keys() == public(awaited).keys()
    assert signature(plain.__init__) == signature(awaited.__init__)
    for name, member in public(plain).items():
        other = public(awaited)[name]
        assert inspect.getdoc(member) == str(inspect.getdoc(other)).replace("async with", "with"), name
        if callable(member):
            assert signature(member) == signature(other), name


@pytest.mark.parametrize(("plain", "awaited"), PAIRS)
def test_both_are_entered_and_left_alike(plain: type[Any], awaited: type[Any]) -> None:
    assert hasattr(plain, "__enter__") == hasattr(awaited, "__aenter__")
    assert hasattr(plain, "__exit__") == hasattr(awaited, "__aexit__")


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_a_method_with_its_arguments(name: str) -> None:
    operation = OPERATIONS[name]
    surface = client.Client if operation.group == "run" else client.StoreClient
    parameters = inspect.signature(getattr(surface, name)).parameters
    assert parameters.keys() - {"self"} == operation.request.model_fields.keys()
    for argument, field in operation.request.model_fields.items():
        given = parameters[argument].default
        if field.is_required():
            assert given is inspect.Parameter.empty, argument
        elif given is not None and given is not inspect.Parameter.empty:
            assert given == field.get_default(), argument
