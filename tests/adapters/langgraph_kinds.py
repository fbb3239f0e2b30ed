"""Values of every kind that LangGraph's serializer writes: an entry for each of its branches, and for what
msgpack has and JSON lacks.
"""

from __future__ import annotations

import dataclasses
import enum
import ipaddress
import math
import pathlib
import re
import uuid
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import numpy as np
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
from langgraph import types
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.store.base import GetOp, Item
from langgraph.types import Command, Interrupt, Overwrite, PregelTask, Send, StateSnapshot
from pydantic import BaseModel, ConfigDict, Field, SecretBytes, SecretStr

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
if hasattr(types, "TimeoutPolicy"):  # LangGraph 1.0 has none
    KINDS["send with timeout"] = Send("node", 1, timeout=types.TimeoutPolicy(run_timeout=3))
WITHOUT_EQUALITY = {"nan", "specials", "computed nan", "other keys", "everything"}
