"""Serialized values to tagged JSON and back: every kind the serializer writes, and anything else.

Each of `KINDS` goes through JSON text to identical bytes, and is decoded to what LangGraph itself builds.
"""

from __future__ import annotations

import enum
import json
import math
import sys
from collections import deque
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from pydantic import BaseModel, SecretBytes, SecretStr

from runmemory_langgraph._bridge import MAX_NESTING, find_secrets, from_json, is_opaque, to_json
from runmemory_langgraph._decoding import decode
from tests.adapters.langgraph_kinds import AI, CUSTOMER, INF, KINDS, NAN, WITHOUT_EQUALITY, Node, Vault

SERDE = JsonPlusSerializer()


def through_text(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


def nesting(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(nesting, value.values()), default=0)
    return 1 + max(map(nesting, value), default=0) if isinstance(value, list) else 0


def is_plain_json(value: Any) -> bool:
    """Whether it is of JSON's types only, and of values that every language reads alike."""
    if type(value) is dict:
        return all(type(k) is str and is_plain_json(v) for k, v in value.items())
    if type(value) is list:
        return all(map(is_plain_json, value))
    if type(value) is int:
        return abs(value) <= 2**53
    if type(value) is float:
        return math.isfinite(value) and str(value) != "-0.0"
    return value is None or type(value) in {str, bool}


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
    # Of a set of tuples LangGraph makes a list of lists.
    built = KINDS[kind] if kind == "nested" else SERDE.loads_typed(typed)
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
        "snapshot": shown(_DeltaSnapshot(["a", "b", 3])),
        "array": shown(np.array([1], dtype="<i2")),
    }
    assert tags == {
        "specials": [{"$lg": "float", "value": v} for v in ("nan", "-nan", "inf", "-inf", "-0.0")],
        "bytes": {"$lg": "b64", "data": "AA=="},
        "top": {"$lg": "b64", "type": "bytes", "data": "AA=="},
        "map": {"$lg": "map", "items": [[1, "a"], [[2, "b"], {"$lg": "b64", "data": ""}]]},
        "set": {"$lg": "ext", "code": 0, "type": "builtins:set", "value": [1]},
        "snapshot": {"$lg": "ext", "code": 7, "value": ["a", "b", 3]},
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
    assert not is_opaque(shown([b"x"])[0])
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
        assert nesting(tagged) <= MAX_NESTING + 2
        assert from_json(through_text(tagged)) == typed
        opaque.append(is_opaque(tagged))
    assert opaque == sorted(opaque)
    assert opaque[:15] == [False] * 15
    assert opaque[-1]


def test_a_key_that_nests_too_deep_makes_the_value_opaque() -> None:
    key: Any = ()
    opaque: list[bool] = []
    for _ in range(80):
        key = (key,)
        typed = SERDE.dumps_typed([[[{key: 1}]]])
        tagged = to_json(typed)
        assert nesting(tagged) <= MAX_NESTING
        assert from_json(tagged) == typed
        opaque.append(is_opaque(tagged))
    assert opaque == sorted(opaque)
    assert set(opaque) == {False, True}


@pytest.mark.parametrize(
    "value",
    [
        {"$lg": "unknown"},
        {"$lg": None},
        {"$lg": ["b64"]},
        {"$lg": "b64", "data": "?"},
        {"$lg": "b64", "data": 5},
        {"$lg": "b64", "data": "A?A=="},
        {"$lg": "b64", "type": "bytes", "data": "A?A=="},
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
        {"$lg": "ext", "code": 2**40, "value": 1},
        {"$lg": "ext", "code": 0, "data": "A?A=="},
        {"$lg": "ext", "code": 0, "type": 5, "value": 1},
        2**70,
        "\ud800",
        [[{"$lg": "map"}]],
        json.loads("[" * 900 + '{"$lg": "b64", "data": ""}' + "]" * 900),
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


class Secret(enum.Enum):
    OPEN = "open"


class Credentials(BaseModel):
    user: str

    def get_secret_value(self) -> str:
        return self.user


def test_a_name_alone_and_a_model_make_no_secret() -> None:
    assert find_secrets(shown([Secret.OPEN, Credentials(user="ada")])) == []


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"secrets", "pydantic model", "everything"}))
def test_nothing_else_is_taken_for_a_secret(kind: str) -> None:
    assert find_secrets(shown(KINDS[kind])) == []
