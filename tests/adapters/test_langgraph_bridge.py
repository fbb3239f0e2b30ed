"""Serialized values to tagged JSON and back: every kind the serializer writes, and anything else.

`KINDS` has an entry for each branch of LangGraph's serializer; each goes through JSON text to identical
bytes, and is decoded to what LangGraph itself would have built.
"""

from __future__ import annotations

import dataclasses
import enum
import ipaddress
import json
import math
import pathlib
import re
import sys
import uuid
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import numpy as np
import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.store.base import GetOp, Item
from langgraph.types import Command, Interrupt, Overwrite, PregelTask, Send, StateSnapshot, TimeoutPolicy
from pydantic import BaseModel, ConfigDict, Field, SecretBytes, SecretStr

from runmemory_langgraph._bridge import find_secrets, from_json, is_opaque, to_json
from runmemory_langgraph._decoding import decode

SERDE = JsonPlusSerializer()
SERVICE_NESTING = 64


# --- classes a user's state may hold --------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Mood(enum.StrEnum):
    CALM = "calm"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Line:
    sku: str
    amount: Decimal
    tags: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    value: int
    parent: Node | None = None


@dataclasses.dataclass
class WithDict:
    a: int

    def dict(self) -> dict[str, int]:
        return {"a": self.a}


class Point(NamedTuple):
    x: int
    y: float


Pair = namedtuple("Pair", "left right")  # noqa: PYI024 # pyright: ignore[reportUntypedNamedTuple]


class Address(BaseModel):
    street: str
    since: date


class Customer(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    full_name: str = Field(alias="fullName")
    addresses: list[Address]
    level: Level = Level.HIGH
    balance: Decimal = Decimal(0)
    secret: SecretStr = SecretStr("s3cret")


T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    held: T


IntBox = Box[int]


class Vault:
    """A secret type of the user's own."""

    def __init__(self, held: str) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vault) and other.held == self.held

    def __hash__(self) -> int:
        return hash(self.held)

    def get_secret_value(self) -> str:
        return self.held


CUSTOMER = Customer(fullName="Ada", addresses=[Address(street="Main", since=date(2020, 1, 2))])
NAN, INF = math.nan, math.inf
AI = AIMessage(
    "hello",
    id="m1",
    tool_calls=[{"name": "search", "args": {"q": "x", "n": 2**60}, "id": "c1"}],
    usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    response_metadata={"model_name": "m", "logprobs": [{"token": "a", "logprob": -0.5}]},
)
SNAPSHOT = StateSnapshot(
    values={"a": 1},
    next=("n",),
    config={"configurable": {"thread_id": "t"}},
    metadata=None,
    created_at=None,
    parent_config=None,
    tasks=(PregelTask(id="1", name="n", path=("__pregel_pull", "n")),),
    interrupts=(),
)

KINDS: dict[str, Any] = {
    # what JSON has
    "none": None,
    "true": True,
    "zero": 0,
    "negative": -5,
    "float": 1.5,
    "whole float": 1.0,
    "tiny float": 5e-324,
    "large float": 1.7e308,
    "text": "Grüße, 世界 🌍",
    "empty text": "",
    "NUL in text": "a\0b",
    "lone surrogate": "a\ud800b",
    "text that looks like a tag": '{"$lg":"b64"}',
    "list": [1, "a", None, [True]],
    "dict": {"a": {"b": [1]}},
    "empty list": [],
    "empty dict": {},
    "nested empties": [[], {}, [{}], {"a": []}],
    # what it lacks
    "greatest exact int": [2**53, -(2**53), "x"],
    "big int": 2**53 + 1,
    "big ints": [2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63)],
    "nan": NAN,
    "specials": [NAN, INF, -INF, -0.0, 0.0, "x", {"a": -0.0}],
    "computed nan": [INF - INF, -NAN],
    "plain floats": [0.1, 2.5, -3.25],
    "floats with negative zero": [0.1, -0.0],
    "floats that overflow summed": [1.7e308, 1.7e308],
    "bytes": b"\x00\xff",
    "empty bytes": b"",
    "bytearray": bytearray(b"abc"),
    "nested bytes": {"a": [b"\x00\xff", bytearray(b"x"), memoryview(b"y")]},
    "tuple": (1, (2, 3)),
    # keys
    "int keys": {1: "a", -2: "b"},
    "big int key": {2**60: 1},
    "tuple keys": {(1, ("a", None)): {"b": 2}, (): 1},
    "other keys": {None: 1, True: 2, 1.5: 3, b"x": 4, NAN: 5, -0.0: 6},
    "mixed keys": {"a": {"b": {2: 3}}, 4: b"x"},
    "date and uuid keys": {date(2024, 1, 2): 1, uuid.UUID(int=5): 2},
    "enum keys": {Level.HIGH: 1, Colour.RED: 2},
    "key $lg": {"$lg": "ext", "code": 0, "type": "os:system", "value": "true"},
    "nested key $lg": [{"a": {"$lg": None, "b": [{"$lg": {"$lg": b"x"}}]}}],
    # subclasses of plain types
    "counter": Counter("aab"),
    "defaultdict": defaultdict(list, a=[1]),
    "ordered dict": OrderedDict(b=1, a=2),
    "str enum": Mood.CALM,
    # the standard library
    "set": {"a"},
    "empty set": set(),
    "frozenset": frozenset({1, 2}),
    "deque": deque([1, {"a": b"x"}]),
    "uuid": uuid.UUID(int=7),
    "decimal": Decimal("1.10"),
    "datetime": datetime(2024, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001 (naive ones exist)
    "aware datetime": datetime(2024, 1, 2, tzinfo=UTC),
    "zoned datetime": datetime(2024, 7, 2, tzinfo=ZoneInfo("Europe/Berlin")),
    "date": date(2024, 1, 2),
    "time": time(1, 2, 3, 4, tzinfo=UTC, fold=1),
    "zoned time": time(1, tzinfo=ZoneInfo("UTC")),
    "timedelta": timedelta(days=-1, microseconds=1),
    "timezone": timezone(timedelta(hours=2)),
    "named timezone": timezone(timedelta(hours=2), "X"),
    "zoneinfo": ZoneInfo("Europe/Berlin"),
    "path": pathlib.Path("/a/b"),
    "relative path": pathlib.Path("a"),
    "pattern": re.compile(r"a(b)?", re.IGNORECASE),
    "bytes pattern": re.compile(rb"a"),
    "ip": ipaddress.ip_address("127.0.0.1"),
    "ip network": ipaddress.ip_network("10.0.0.0/8"),
    "ip interface": ipaddress.ip_interface("10.0.0.1/8"),
    "ip6": ipaddress.ip_address("::1"),
    "ip6 network": ipaddress.ip_network("2001:db8::/32"),
    "ip6 interface": ipaddress.ip_interface("2001:db8::1/32"),
    "exception": ValueError("broken: 'x'"),
    # classes
    "enum": Colour.RED,
    "int enum": Level.HIGH,
    "flag": Access.READ | Access.WRITE,
    "dataclass": Line("a", Decimal(1), {"x"}),
    "dataclasses in a row": Node(1, Node(2, Node(3))),
    "dataclass with a dict method": WithDict(1),
    "named tuple": Point(1, 2.5),
    "untyped named tuple": Pair({"a": 1}, [b"x"]),
    "pydantic model": CUSTOMER,
    "generic pydantic model": [Box(held=1)],
    "secrets": [SecretStr("a"), SecretBytes(b"b"), {"c": SecretStr("")}],
    # LangChain
    "human message": HumanMessage([{"type": "text", "text": "hi"}], id="h", name="Ada"),
    "ai message": AI,
    "ai message chunk": AIMessageChunk(content="x", id="c"),
    "human message chunk": HumanMessageChunk(content="x"),
    "system message": SystemMessage("be brief"),
    "tool message": ToolMessage("42", tool_call_id="c1", artifact={1: b"x"}, status="error"),
    "function message": FunctionMessage(content="42", name="f"),
    "chat message": ChatMessage(content="x", role="critic"),
    "remove message": RemoveMessage(id="m1"),
    "history": [HumanMessage("q"), AI, ToolMessage("42", tool_call_id="c1")],
    "document": Document("text", metadata={"page": 3, "when": date(2024, 1, 2)}, id="d"),
    # LangGraph
    "send": Send("node", {"x": HumanMessage("y")}),
    "send with timeout": Send("node", 1, timeout=TimeoutPolicy(run_timeout=3)),
    "command": Command(update={"a": [AI]}, goto=[Send("n", 1)], resume={"id": (1, 2)}),
    "interrupt": (Interrupt(value={"ask": "sure?"}, id="i1"),),
    "overwrite": Overwrite({"a": 1}),
    "state snapshot": SNAPSHOT,
    "item": Item(
        value={"a": 1},
        key="k",
        namespace=("n", "m"),
        created_at=datetime(2024, 1, 2, tzinfo=UTC),
        updated_at=datetime(2024, 1, 3, tzinfo=UTC),
    ),
    "get operation": GetOp(namespace=("n",), key="k"),
    "delta snapshot": _DeltaSnapshot([HumanMessage("x"), {1: 2}]),
    "delta snapshot of nothing": _DeltaSnapshot(None),
    # NumPy
    "array": np.arange(6.0).reshape(2, 3),
    "array by columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "strided array": np.arange(10)[::2],
    "array of no dimension": np.array(5),
    "empty array": np.zeros((0, 3), dtype="<u2"),
    "arrays of bools and times": {"a": np.array([True]), "b": np.zeros(4, dtype="<M8[D]")[::2]},
    # extensions in extensions
    "nested": deque([frozenset({(Decimal(1), uuid.UUID(int=1))}), Line("a", Decimal(2), set())]),
    "everything": {"a": [CUSTOMER, {(1, 2): Point(1, NAN)}, _DeltaSnapshot(deque([Send("n", {1, 2})]))]},
}
WITHOUT_EQUALITY = {"nan", "specials", "computed nan", "other keys", "everything"}


def through_text(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


def nesting(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(nesting, value.values()), default=0)
    return 1 + max(map(nesting, value), default=0) if isinstance(value, list) else 0


def is_plain_json(value: Any) -> bool:
    if type(value) is dict:
        return all(type(k) is str and is_plain_json(v) for k, v in value.items())
    if type(value) is list:
        return all(map(is_plain_json, value))
    return value is None or type(value) in {str, int, float, bool}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and bool(np.all(one == other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    return type(one) is type(other) and one == other


# --- every kind -----------------------------------------------------------------------------------------


def test_there_are_enough_kinds() -> None:
    assert len(KINDS) >= 71


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_becomes_plain_json_and_comes_back_as_identical_bytes(kind: str) -> None:
    typed = SERDE.dumps_typed(KINDS[kind])
    value = to_json(typed)
    assert is_plain_json(value)
    assert not is_opaque(value)
    assert from_json(through_text(value)) == typed


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_decoded_to_what_langgraph_builds(kind: str) -> None:
    typed = SERDE.dumps_typed(KINDS[kind])
    decoded = decode(through_text(to_json(typed)), serde=SERDE)
    built = SERDE.loads_typed(typed)
    assert repr(decoded) == repr(built)
    assert kind in WITHOUT_EQUALITY or same(decoded, built)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - WITHOUT_EQUALITY))
def test_going_back_leaves_the_json_as_it_was(kind: str) -> None:
    value = to_json(SERDE.dumps_typed(KINDS[kind]))
    before = json.dumps(value)
    from_json(value)
    assert json.dumps(value) == before


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="pydantic.v1 does not support it")
def test_a_model_of_pydantic_v1_comes_back() -> None:
    from pydantic.v1 import BaseModel as BaseModelV1

    class Old(BaseModelV1):
        a: int
        when: date

    globals()["Old"] = Old
    typed = SERDE.dumps_typed([Old(a=1, when=date(2024, 1, 2))])
    value = through_text(to_json(typed))
    assert value[0]["code"] == 4
    assert from_json(value) == typed
    assert decode(value, serde=SERDE) == [Old(a=1, when=date(2024, 1, 2))]


# --- the form -------------------------------------------------------------------------------------------


def shown(value: Any) -> Any:
    return to_json(SERDE.dumps_typed(value))


def test_a_message_is_readable() -> None:
    value = shown(AI)
    fields = value.pop("value")
    assert value == {
        "$lg": "ext",
        "code": 5,
        "type": "langchain_core.messages.ai:AIMessage",
        "method": "model_validate_json",
    }
    assert fields["content"] == "hello"
    assert fields["tool_calls"][0]["args"] == {"q": "x", "n": {"$lg": "int", "value": str(2**60)}}


def test_plain_values_stay_as_they_are() -> None:
    plain = {"a": [1, 2.5, None, True, "x"], "b": {"c": 2**53}}
    assert shown(plain) == plain
    assert shown(None) is None


def test_the_tags_are_those_of_the_format() -> None:
    tags = {
        "specials": [shown(v) for v in (NAN, -NAN, INF, -INF, -0.0)],
        "bytes": shown([b"\x00"])[0],
        "top": shown(b"\x00"),
        "map": shown({1: "a", (2, "b"): b""}),
        "set": shown({1}),
        "snapshot": shown(_DeltaSnapshot(3)),
        "array": shown(np.array([1], dtype="<i2")),
    }
    assert tags == {
        "specials": [{"$lg": "float", "value": v} for v in ("nan", "-nan", "inf", "-inf", "-0.0")],
        "bytes": {"$lg": "b64", "data": "AA=="},
        "top": {"$lg": "b64", "type": "bytes", "data": "AA=="},
        "map": {"$lg": "map", "items": [[1, "a"], [[2, "b"], {"$lg": "b64", "data": ""}]]},
        "set": {"$lg": "ext", "code": 0, "type": "builtins:set", "value": [1]},
        "snapshot": {"$lg": "ext", "code": 7, "value": 3},
        "array": {"$lg": "ext", "code": 6, "value": ["<i2", [1], "C", {"$lg": "b64", "data": "AQA="}]},
    }


def test_a_users_dict_with_the_key_of_a_tag_is_no_tag() -> None:
    assert shown({"$lg": "b64", "data": "AA=="}) == {
        "$lg": "map",
        "items": [["$lg", "b64"], ["data", "AA=="]],
    }


# --- anything else --------------------------------------------------------------------------------------


def ext(code: int, payload: Any) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(payload)))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(ext(42, "x"), id="an unknown code"),
        pytest.param(ormsgpack.packb(ormsgpack.Ext(0, b"\xc1")), id="no msgpack inside"),
        pytest.param(ext(0, "text"), id="no tuple inside"),
        pytest.param(ext(0, ["module", "name"]), id="nothing to call with"),
        pytest.param(ext(0, ["module", 1, 2]), id="a name that is no text"),
        pytest.param(ext(0, ["mod:ule", "name", 2]), id="a module with a colon"),
        pytest.param(ext(3, ["module", "name", 2, 3]), id="a method that is no text"),
        pytest.param(ext(5, ["module", "name", 2, "m", "n"]), id="too much inside"),
        pytest.param(ormsgpack.packb(ormsgpack.Ext(7, b"\xc1")), id="a snapshot of no msgpack"),
    ],
)
def test_an_extension_of_another_form_alone_is_kept_in_base64(data: bytes) -> None:
    typed = ("msgpack", b"\x92\xa1a" + data)
    first, second = value = to_json(typed)
    assert first == "a"
    assert set(second) == {"$lg", "code", "data"}
    assert from_json(through_text(value)) == typed


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xc1", id="no msgpack"),
        pytest.param(b"\x01\x01", id="more than one value"),
        pytest.param(b"\xc0", id="nil, which the serializer writes as the kind null"),
        pytest.param(b"\xcd\x00\x01", id="an integer longer than needed"),
        pytest.param(b"\xca\x3f\x80\x00\x00", id="a short float"),
        pytest.param(b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01", id="a nan with a payload"),
        pytest.param(b"\x82\xa1a\x01\xa1a\x02", id="a repeated key"),
        pytest.param(b"\x81\x81\x01\x02\x03", id="a dict as key"),
        pytest.param(b"\xa1\xff", id="text that is no UTF-8"),
        pytest.param(b"\xd4\xffa", id="a negative extension code"),
        pytest.param(ext(0, ["m", "n"])[:-1], id="cut off"),
        pytest.param(ormsgpack.packb(ormsgpack.Ext(0, b"\x93\xa1m\xa1n\xcd\x00\x01")), id="inexact inside"),
    ],
)
def test_bytes_that_json_cannot_show_exactly_are_kept_whole_and_opaque(data: bytes) -> None:
    value = to_json(("msgpack", data))
    assert is_opaque(value)
    assert value["type"] == "msgpack"
    assert from_json(through_text(value)) == ("msgpack", data)


@pytest.mark.parametrize("kind", ["msgpack+aes", "pickle", "null+aes", "bytes+aes", "AnyName", ""])
def test_what_another_serializer_wrote_is_opaque(kind: str) -> None:
    value = to_json((kind, b"\x00\x01"))
    assert is_opaque(value)
    assert from_json(through_text(value)) == (kind, b"\x00\x01")


def test_bytes_and_readable_values_are_not_opaque() -> None:
    assert not any(is_opaque(shown(v)) for v in (b"x", bytearray(b"x"), None, {"a": b"x"}, AI, [1], "x"))


def test_json_is_kept_as_its_text() -> None:
    typed = ("json", b'{ "a" : 1e3 }')
    assert to_json(typed) == {"$lg": "json", "text": '{ "a" : 1e3 }'}
    assert from_json(to_json(typed)) == typed
    assert is_opaque(to_json(("json", b"\xff")))
    assert from_json(to_json(("json", b"\xff"))) == ("json", b"\xff")


def test_null_with_bytes_keeps_them() -> None:
    assert from_json(to_json(("null", b"x"))) == ("null", b"x")


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda v: [v], id="lists"),
        pytest.param(lambda v: {"a": v}, id="dicts"),
        pytest.param(lambda v: {1: v}, id="maps"),
        pytest.param(lambda v: {(1, 2): v, "$lg": [v]} if v == 0 else {(1, 2): v}, id="maps with tuples"),
        pytest.param(_DeltaSnapshot, id="extensions"),
        pytest.param(lambda v: Node(1, v), id="dataclasses"),
        pytest.param(lambda v: {(v if isinstance(v, tuple) else 1,): 2} if v == 0 else (v,), id="tuples"),
    ],
)
def test_json_never_nests_deeper_than_the_service_takes(wrap: Any) -> None:
    value: Any = 0
    opaque: list[bool] = []
    for _ in range(80):
        value = wrap(value)
        typed = SERDE.dumps_typed(value)
        tagged = to_json(typed)
        assert nesting(tagged) < SERVICE_NESTING - 4
        assert from_json(through_text(tagged)) == typed
        opaque.append(is_opaque(tagged))
    assert opaque == sorted(opaque)
    assert opaque[:15] == [False] * 15
    assert opaque[-1]


def test_a_key_that_nests_too_deep_makes_the_value_opaque() -> None:
    key: Any = ()
    for _ in range(80):
        key = (key,)
    typed = SERDE.dumps_typed({key: 1})
    assert is_opaque(to_json(typed))
    assert from_json(to_json(typed)) == typed


@pytest.mark.parametrize(
    "value",
    [
        {"$lg": "unknown"},
        {"$lg": None},
        {"$lg": ["b64"]},
        {"$lg": "b64", "data": "?"},
        {"$lg": "b64", "data": 5},
        {"$lg": "b64", "type": "bytes"},
        {"$lg": "json", "text": 1},
        {"$lg": "json", "text": "\ud800"},
        {"$lg": "map", "items": [[{"a": 1}, 2]]},
        {"$lg": "map", "items": [[1]]},
        {"$lg": "int", "value": "secret-7"},
        {"$lg": "int", "value": str(2**70)},
        {"$lg": "float", "value": "x"},
        {"$lg": "ext", "code": 0},
        {"$lg": "ext", "code": "0", "value": 1},
        {"$lg": "ext", "code": 2**70, "value": 1},
        {"$lg": "ext", "code": 0, "type": 5, "value": 1},
        2**70,
        "\ud800",
        [[{"$lg": "map"}]],
    ],
)
def test_what_was_not_written_here_is_an_error_that_shows_no_value(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^not the tagged JSON of a checkpoint value") as caught:
        from_json(value)
    assert "secret" not in str(caught.value)


# --- properties -----------------------------------------------------------------------------------------

KEY_PARTS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.sampled_from(["$lg", "a", "value", ""])
    | st.text(max_size=5)
    | st.binary(max_size=5)
)
KEYS = st.recursive(KEY_PARTS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
VALUES = st.recursive(
    KEY_PARTS | st.lists(st.floats()) | st.lists(st.integers(-(2**63), 2**64 - 1)),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=30,
)


@given(VALUES)
def test_any_plain_value_comes_back_as_identical_bytes(value: Any) -> None:
    typed = SERDE.dumps_typed(value)
    tagged = to_json(typed)
    assert is_plain_json(tagged)
    assert from_json(through_text(tagged)) == typed


@given(st.sampled_from(["msgpack", "json", "null", "bytes", "x"]) | st.text(), st.binary())
def test_any_bytes_of_any_kind_come_back(kind: str, data: bytes) -> None:
    assert from_json(through_text(to_json((kind, data)))) == (kind, data)


# --- secrets by type ------------------------------------------------------------------------------------


def test_secret_types_are_found_wherever_they_stand() -> None:
    value = shown(
        {
            "a/b~c": [1, SecretStr("one")],
            "model": CUSTOMER,
            "map": {1: SecretBytes(b"two")},
            "own": Vault("three"),
            "plain": ["s3cret", {"x": Decimal(1)}],
            "set": deque([SecretStr("four")]),
        }
    )
    assert find_secrets(value) == [
        "/a~1b~0c/1/value",
        "/model/value/secret/value",
        "/map/items/0/1/value",
        "/own/value",
        "/set/value/0/value",
    ]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="pydantic.v1 does not support it")
def test_a_secret_of_pydantic_v1_is_found() -> None:
    from pydantic.v1 import SecretStr as SecretStrV1

    assert find_secrets(shown([SecretStrV1("x")])) == ["/0/value"]


def test_a_secret_alone_is_found_and_can_be_replaced() -> None:
    value = shown(SecretStr("x"))
    assert find_secrets(value) == ["/value"]
    value["value"] = "[removed]"
    assert decode(value, serde=SERDE).get_secret_value() == "[removed]"


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"secrets", "pydantic model", "everything"}))
def test_nothing_else_is_taken_for_a_secret(kind: str) -> None:
    assert find_secrets(shown(KINDS[kind])) == []
