"""What stored bytes may ask for: nothing is imported, called or built that was not judged before."""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import logging
import pickle
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import ormsgpack
import pydantic.v1
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.base import maybe_add_typed_methods
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.event_hooks import register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from pydantic import BaseModel, Field

from runmemory_core.errors import RunMemoryError
from runmemory_langgraph import _decoding
from runmemory_langgraph._bridge import to_json
from runmemory_langgraph._decoding import DecodingRefused, decode

SERDE = JsonPlusSerializer()
FIRED: list[Any] = []


def detonate(*args: Any, **kwargs: Any) -> None:
    """What an attacker would name: a function of a module that is imported."""
    FIRED.append((args, kwargs))


class Charge:
    """A class of an imported module that does something when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        detonate(*args, **kwargs)


class OwnId(UUID):
    """A plain class of the user's own, harmless but of no kind that is built unasked."""


class OwnDatetime(datetime):
    pass


@dataclasses.dataclass
class Order:
    sku: str

    @dataclasses.dataclass
    class Line:
        sku: str


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int


class Customer(BaseModel):
    name: str


OWN = [Order("a"), Colour.RED, Point(1), Customer(name="x")]


@pytest.fixture(autouse=True)
def nothing_fires() -> Iterator[None]:
    FIRED.clear()
    yield
    assert FIRED == []


def ext(code: int, *parts: Any) -> ormsgpack.Ext:
    return ormsgpack.Ext(code, ormsgpack.packb(parts))


def stored(value: Any) -> Any:
    """Tagged JSON of what an attacker packed, as it comes from the store."""
    return json.loads(json.dumps(to_json(("msgpack", ormsgpack.packb(value)))))


def naming(thing: Any) -> tuple[str, str]:
    return thing.__module__, thing.__name__


# --- attacks --------------------------------------------------------------------------------------------

ATTACKS = {
    "a command": ext(0, "os", "system", "exit 1"),
    "a command by its real module": ext(0, "posix", "system", "exit 1"),
    "eval": ext(0, "builtins", "eval", "1/0"),
    "a process": ext(1, "subprocess", "Popen", [["false"]]),
    "a function with one argument": ext(0, *naming(detonate), 1),
    "a function with positions": ext(1, *naming(detonate), [1]),
    "a function with names": ext(2, *naming(detonate), {"a": 1}),
    "a function as a method": ext(3, *naming(Charge), 1, "__call__"),
    "a function as a model of pydantic v1": ext(4, *naming(detonate), {"a": 1}),
    "a function as a model of pydantic v2": ext(5, *naming(detonate), {"a": 1}, "model_validate_json"),
    "a class of no plain kind": ext(1, *naming(Charge), [1]),
    "an import": ext(0, "builtins", "__import__", "antigravity"),
    "a loader": ext(0, "pickle", "loads", pickle.dumps(1)),
    "a method of a safe class": ext(3, "pathlib", "Path", "/", "rmdir"),
    "another method of datetime": ext(3, "datetime", "datetime", "x", "strptime"),
    "no method": ext(3, "datetime", "datetime", "2024-01-02"),
    "an unknown code": ext(42, "x"),
    "no tuple": ormsgpack.Ext(0, ormsgpack.packb("text")),
    "a dict read like a tuple": ormsgpack.Ext(
        0, ormsgpack.packb({0: "os", 1: "system", 2: "exit 1"}, option=ormsgpack.OPT_NON_STR_KEYS)
    ),
    "more than LangGraph writes": ext(0, *naming(detonate), 1, "m", "n"),
    "no msgpack": ormsgpack.Ext(1, b"\xc1"),
}
HIDING_PLACES = {
    "alone": lambda attack: attack,
    "in a list in a dict": lambda attack: {"a": [1, {"b": attack}]},
    "in a message": lambda attack: ext(5, *naming(HumanMessage), {"content": "x", "name": attack}),
    "in a set": lambda attack: ext(0, "builtins", "set", [attack]),
    "in a snapshot": lambda attack: ormsgpack.Ext(7, ormsgpack.packb(attack)),
    "in an array": lambda attack: ext(6, "<i2", [1], "C", attack),
    "in place of a name": lambda attack: ext(0, attack, "set", []),
}


@pytest.mark.parametrize("place", HIDING_PLACES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused_and_nothing_runs(attack: str, place: str) -> None:
    before = set(sys.modules)
    with pytest.raises(DecodingRefused):
        decode(stored(HIDING_PLACES[place](ATTACKS[attack])), serde=SERDE)
    assert set(sys.modules) == before


@pytest.mark.parametrize("kind", ["msgpack", "x"])
def test_an_attack_that_a_repeated_key_hides_is_refused(kind: str) -> None:
    hidden = b"\x82\xa1a" + ormsgpack.packb(ext(0, *naming(detonate), 1)) + b"\xa1a\x01"
    value = to_json(("msgpack", hidden))
    if kind == "x":  # deeper in: the payload of an extension, which is opened later than the rest
        value = to_json(("msgpack", ormsgpack.packb(ormsgpack.Ext(7, hidden))))
    with pytest.raises(DecodingRefused):
        decode(value, serde=SERDE)


def test_a_command_is_not_executed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(DecodingRefused, match=r"os\.system"):
        decode(stored([ext(0, "os", "system", f"touch {mark}")]), serde=SERDE)
    assert not mark.exists()


def test_a_module_is_not_imported_and_the_refusal_names_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "not_yet_imported.py").write_text(
        "import dataclasses, pathlib\n"
        "pathlib.Path(__file__).with_name('mark').touch()\n"
        "@dataclasses.dataclass\n"
        "class Late:\n"
        "    a: int\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    value = stored(ext(2, "not_yet_imported", "Late", {"a": 1}))
    with pytest.raises(DecodingRefused, match="import not_yet_imported first"):
        decode(value, serde=SERDE)
    assert not (tmp_path / "mark").exists()
    assert "not_yet_imported" not in sys.modules

    import not_yet_imported  # pyright: ignore[reportMissingImports]

    assert decode(value, serde=SERDE) == not_yet_imported.Late(1)
    del sys.modules["not_yet_imported"]


def test_a_name_that_a_module_would_import_on_demand_is_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "on_demand.py").write_text(
        "def __getattr__(name):\n"
        "    import pathlib\n"
        "    pathlib.Path(__file__).with_name('mark').touch()\n"
        "    raise AttributeError(name)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import on_demand  # pyright: ignore[reportMissingImports]

    with pytest.raises(DecodingRefused, match="no such name"):
        decode(stored(ext(2, on_demand.__name__, "Plugin", {})), serde=SERDE)
    assert not (tmp_path / "mark").exists()
    del sys.modules["on_demand"]


class Pickled:
    def __reduce__(self) -> Any:
        return detonate, (1,)


class Derived(JsonPlusSerializer):
    pass


class DerivedEncrypted(EncryptedSerializer):
    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return super().loads_typed(data)


@pytest.mark.parametrize("derived", [False, True])
def test_a_pickle_is_never_loaded(*, derived: bool) -> None:
    trusting = (Derived if derived else JsonPlusSerializer)(pickle_fallback=True)
    encrypted = (DerivedEncrypted if derived else EncryptedSerializer)(NoCipher(), trusting)
    data = pickle.dumps(Pickled())
    for kind, stored_data, serde in (
        ("pickle", data, trusting),
        ("pickle", data, encrypted),
        ("pickle+own", base64.b64encode(data), encrypted),
    ):
        with pytest.raises(DecodingRefused, match="a pickle is never loaded"):
            decode(to_json((kind, stored_data)), serde=serde)


@pytest.mark.parametrize(
    "text",
    [
        '{"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["exit 1"]}',
        '[{"a": {"lc": 1, "type": "secret", "id": ["PATH"]}}]',
        '{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"]}',
        "{",
        pytest.param("[" * 100_000, id="brackets without end"),
    ],
)
def test_an_object_in_the_old_json_form_is_refused(text: str) -> None:
    trusting = JsonPlusSerializer(allowed_json_modules=True)
    with pytest.raises(DecodingRefused):
        decode(to_json(("json", text.encode())), serde=trusting)


def test_plain_values_in_the_old_json_form_are_read() -> None:
    assert decode(to_json(("json", b'{"a": [1, {"b": null}]}')), serde=SERDE) == {"a": [1, {"b": None}]}


def test_extensions_that_nest_without_end_are_refused() -> None:
    data = ormsgpack.packb(1)
    for _ in range(5000):
        data = ormsgpack.packb(ormsgpack.Ext(7, data))
    with pytest.raises(DecodingRefused):
        decode(to_json(("msgpack", data)), serde=SERDE)


@pytest.mark.parametrize(
    "value", [{"$lg": "nothing"}, {"$lg": "b64", "type": ["x"], "data": ""}, [{"$lg": "int", "value": "x"}]]
)
def test_json_that_was_not_written_here_is_refused(value: Any) -> None:
    with pytest.raises(DecodingRefused):
        decode(value, serde=SERDE)


# --- the refusal ----------------------------------------------------------------------------------------


def test_a_refusal_is_an_error_of_run_memory_with_a_code_and_the_name() -> None:
    with pytest.raises(RunMemoryError) as caught:
        decode(stored(ext(0, "os", "system", "a payload")), serde=SERDE)
    assert caught.value.code == "decoding_refused"
    assert caught.value.facts == {"module": "os", "name": "system"}
    assert "allow=[('os', 'system')]" in caught.value.detail
    assert "a payload" not in caught.value.detail


def test_a_refusal_does_not_repeat_a_name_without_end() -> None:
    with pytest.raises(DecodingRefused) as caught:
        decode(stored(ext(0, "m" * 10_000, "n" * 10_000, 1)), serde=SERDE)
    assert len(caught.value.detail) < 1000


@pytest.mark.parametrize(
    "value",
    [
        stored([1, ext(0, "os", "system", "exit 1")]),
        to_json(("pickle", b"x")),
        {"$lg": "nothing"},
    ],
)
def test_a_tool_that_only_looks_gets_the_tagged_json(value: Any) -> None:
    assert decode(value, serde=SERDE, on_unknown="raw") is value


def test_a_class_defined_inside_another_is_refused_instead_of_becoming_a_dict() -> None:
    value = to_json(SERDE.dumps_typed(Order.Line("a")))
    with pytest.raises(DecodingRefused, match="no such name at the top level"):
        decode(value, serde=SERDE)
    assert decode(value, serde=SERDE, allow={Order.Line}) == Order.Line("a")
    with pytest.raises(DecodingRefused, match="pass the class itself in allow"):
        decode(value, serde=SERDE, allow={naming(Order.Line)})


def test_a_datetime_of_another_class_is_refused_instead_of_becoming_text() -> None:
    value = to_json(SERDE.dumps_typed(OwnDatetime(2024, 1, 2)))
    with pytest.raises(DecodingRefused, match="only fromisoformat of datetime is called"):
        decode(value, serde=SERDE)
    assert decode(value, serde=SERDE, allow={OwnDatetime}) == OwnDatetime(2024, 1, 2)


# --- what is built --------------------------------------------------------------------------------------


@pytest.mark.parametrize("allow", [[OwnId], {naming(OwnId)}, frozenset({OwnId, Order})])
def test_an_allowed_class_is_built(allow: Any) -> None:
    value = to_json(SERDE.dumps_typed([OwnId(int=5)]))
    with pytest.raises(DecodingRefused, match="no pydantic model, dataclass, enum or named tuple"):
        decode(value, serde=SERDE)
    assert decode(value, serde=SERDE, allow=allow) == [OwnId(int=5)]


@pytest.mark.parametrize(
    "serde",
    [
        pytest.param(JsonPlusSerializer(), id="as LangGraph makes it"),
        pytest.param(JsonPlusSerializer(allowed_msgpack_modules=None), id="strict"),
        pytest.param(JsonPlusSerializer(allowed_msgpack_modules=[Order]), id="allowing one"),
        pytest.param(Derived(allowed_msgpack_modules=None), id="derived"),
    ],
)
def test_the_users_own_classes_are_built_without_a_warning_or_an_event(
    serde: JsonPlusSerializer, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[Any] = []
    unregister = register_serde_event_listener(events.append)
    try:
        with caplog.at_level(logging.DEBUG):
            built = decode(to_json(serde.dumps_typed([*OWN, AIMessage("x")])), serde=serde)
    finally:
        unregister()
    assert built == [*OWN, AIMessage("x")]
    assert caplog.records == []
    assert events == []


class Counting(JsonPlusSerializer):
    """A serializer of the user's own, with a kind of its own."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return len(data[1]) if data[0] == "zeros" else ("own", super().loads_typed(data))


def test_a_derived_serializer_loads_by_its_own_method_after_the_judgement() -> None:
    serde = Counting()
    assert decode(to_json(serde.dumps_typed([1])), serde=serde) == ("own", [1])
    assert decode(to_json(("zeros", b"\0\0")), serde=serde) == 2
    with pytest.raises(DecodingRefused):
        decode(stored(ext(0, *naming(detonate), 1)), serde=serde)


def test_an_extension_hook_of_the_users_own_is_kept() -> None:
    serde = JsonPlusSerializer(__unpack_ext_hook__=lambda code, _: f"extension {code}")
    assert decode(stored([ext(42, "x")]), serde=serde) == ["extension 42"]
    with pytest.raises(DecodingRefused):
        decode(stored(ext(0, *naming(detonate), 1)), serde=serde)


def test_without_langgraphs_lists_its_values_need_to_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    value = to_json(SERDE.dumps_typed([{1}, AIMessage("x")]))
    assert decode(value, serde=SERDE) == [{1}, AIMessage("x")]
    monkeypatch.setattr(_decoding, "_SAFE_TYPES", frozenset())
    with pytest.raises(DecodingRefused, match=r"builtins\.set"):
        decode(value, serde=SERDE)
    assert decode(value, serde=SERDE, allow=[set]) == [{1}, AIMessage("x")]


# --- classes that changed since the save, and what each takes back ----------------------------------------


class OldModel(pydantic.v1.BaseModel):
    a: int = pydantic.v1.Field(alias="theA")


class Aliased(BaseModel):
    held: int = Field(alias="theHeld")
    inner: list[Aliased] = []


@dataclasses.dataclass
class Counted:
    a: int
    total: int = dataclasses.field(init=False, default=0)


class Corner(enum.Enum):
    LOWER = (0, (1, 2))


CHANGED = {
    "a dataclass": ext(2, *naming(Order), {"gone": 1}),
    "an enum": ext(0, *naming(Colour), "green"),
    "a named tuple": ext(2, *naming(Point), {"x": 1, "y": 2}),
    "a model": ext(5, *naming(Customer), {"name": 1}, "model_validate_json"),
    "a model of pydantic v1": ext(4, *naming(OldModel), {"a": "text"}),
    "another class of the same name": ext(5, *naming(Order), {"name": "x"}, "model_validate_json"),
    "a safe class": ext(0, "uuid", "UUID", "text"),
    "an array": ext(6, "|O", [1], "C", b"12345678"),
    "a datetime": ext(3, "datetime", "datetime", "text", "fromisoformat"),
}


@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize(
    "place", ["alone", "in a list in a dict", "in a message", "in a set", "in a snapshot"]
)
@pytest.mark.parametrize("kind", CHANGED)
def test_a_class_that_does_not_take_what_was_saved_is_refused(
    kind: str, place: str, *, derived: bool
) -> None:
    value = stored(HIDING_PLACES[place](CHANGED[kind]))
    with pytest.raises(DecodingRefused, match="the class does not take"):
        decode(value, serde=Derived() if derived else SERDE)


@pytest.mark.parametrize(
    "value",
    [
        Aliased(theHeld=1, inner=[Aliased(theHeld=2)]),
        OldModel(theA=1),
        Corner.LOWER,
        {(1, ("a", 2))},
        frozenset({(1, 2)}),
    ],
)
def test_what_langgraph_would_hand_on_as_something_else_comes_back_as_it_was(value: Any) -> None:
    assert decode(to_json(SERDE.dumps_typed(value)), serde=SERDE) == value


def test_a_field_that_a_constructor_does_not_take_comes_back() -> None:
    counted = Counted(1)
    counted.total = 5
    assert decode(to_json(SERDE.dumps_typed(counted)), serde=SERDE) == counted


def test_a_class_defined_in_a_function_is_built_where_it_is_given_itself() -> None:
    class Order(BaseModel):  # its name is that of another class of the module
        n: int

    value = to_json(SERDE.dumps_typed([Order(n=1)]))
    with pytest.raises(DecodingRefused, match="the class does not take"):
        decode(value, serde=SERDE)
    assert decode(value, serde=SERDE, allow=[Order]) == [Order(n=1)]


def test_a_removed_value_need_not_fit_its_field() -> None:
    class Pinned(BaseModel):
        token: int

    pinned = to_json(SERDE.dumps_typed(Pinned(token=1)))
    pinned["value"]["token"] = "[removed]"
    assert decode(pinned, serde=SERDE, allow=[Pinned]).token == "[removed]"


# --- other serializers ----------------------------------------------------------------------------------


class NoCipher:
    """A cipher without authentication: it cannot tell who wrote the bytes, nor as which kind."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "own", base64.b64encode(plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "own"
        return base64.b64decode(ciphertext)


@pytest.mark.parametrize("value", [None, b"x", [*OWN, {1}], _DeltaSnapshot([AIMessage("x")])])
def test_an_encrypted_value_is_built(value: Any) -> None:
    serde = EncryptedSerializer(NoCipher())
    assert decode(to_json(serde.dumps_typed(value)), serde=serde) == value
    assert decode(to_json(SERDE.dumps_typed(value)), serde=serde) == value  # from before encryption


def test_an_attack_inside_an_encrypted_value_is_refused() -> None:
    serde = EncryptedSerializer(NoCipher())
    planted = base64.b64encode(ormsgpack.packb(ext(0, *naming(detonate), 1)))
    with pytest.raises(DecodingRefused):
        decode(to_json(("msgpack+own", planted)), serde=serde)


def test_a_value_of_another_serializer_is_refused_by_name_of_its_kind() -> None:
    with pytest.raises(DecodingRefused, match=r"msgpack\+own: give the saver the serializer"):
        decode(to_json(EncryptedSerializer(NoCipher()).dumps_typed([1])), serde=SERDE)


class Plain:
    """The oldest kind of serializer: two methods and no type."""

    def dumps(self, obj: Any) -> bytes:
        return json.dumps(obj).encode()

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


def test_a_serializer_of_the_users_own_reads_its_own_bytes() -> None:
    serde = maybe_add_typed_methods(Plain())
    assert decode(to_json(serde.dumps_typed({"a": 1})), serde=serde) == {"a": 1}
