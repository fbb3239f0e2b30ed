"""States in parts: the same text comes back, growth is cheap, and bounds are exact."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runmemory_core import parts
from runmemory_core.policy.json_rules import write
from runmemory_core.store.codec import pack, unpack

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(NAMES, inner, max_size=9),
    max_leaves=30,
)
# Long enough for pages, with elements that become parts and elements that do not.
LISTS = st.lists(st.integers(0, 3).flatmap(lambda n: st.just("é" * 150 * n) | JSON), max_size=100)


def needed(node: parts.Node, texts: dict[str, str]) -> set[str]:
    """The addresses that `join` asks for."""
    asked: set[str] = set()

    def part(address: str) -> str:
        asked.add(address)
        return texts[address]

    parts.join(node, part)
    return asked


@given(JSON | LISTS)
def test_a_value_comes_back_as_its_compact_text(value: Any) -> None:
    texts: dict[str, str] = {}
    node = parts.split(value, texts)
    assert parts.join(node, texts.__getitem__) == write(value)
    assert parts.well_formed(node)
    assert parts.reachable([node], texts.__getitem__) == texts.keys() == needed(node, texts)
    assert all(parts.address(text) == address for address, text in texts.items())


@given(st.dictionaries(NAMES, JSON | LISTS, max_size=4))
def test_an_object_comes_back_by_member(value: dict[str, Any]) -> None:
    texts: dict[str, str] = {}
    node = parts.split_object(value, texts)
    assert parts.join(node, texts.__getitem__) == write(value)
    assert parts.reachable([node], texts.__getitem__) == texts.keys() == needed(node, texts)
    members = [inner for _, inner in node["o"]]
    assert parts.reachable(members, texts.__getitem__) == texts.keys()


@given(st.dictionaries(NAMES, JSON | LISTS, max_size=4))
def test_a_value_is_measured_without_putting_it_together(value: dict[str, Any]) -> None:
    texts: dict[str, str] = {}
    node = parts.split_object(value, texts)
    bytes_of = {address: len(text.encode()) for address, text in texts.items()}.__getitem__
    of_pages = {page: parts.measure_elements(json.loads(texts[page]), bytes_of) for page in parts.pages(node)}
    assert parts.measure(node, bytes_of, of_pages.__getitem__) == len(write(value).encode())


def test_text_in_chunks_is_measured_too() -> None:
    texts: dict[str, str] = {}
    node = parts.split("\U0001f600" * 80_000, texts)
    sizes = {address: len(text.encode()) for address, text in texts.items()}
    assert parts.measure(node, sizes.__getitem__, sizes.__getitem__) == 320_002
    with pytest.raises(ValueError, match=r"not a node: an object with the keys \['q'\]"):
        parts.measure({"q": 1}, sizes.__getitem__, sizes.__getitem__)


@given(LISTS)
def test_a_node_survives_the_database(value: Any) -> None:
    texts: dict[str, str] = {}
    node = parts.split(value, texts)
    kept = {address: pack(text) for address, text in texts.items()}
    again = json.loads(unpack(pack(write(node))))
    assert parts.join(again, lambda address: unpack(kept[address])) == write(value)


@pytest.mark.parametrize("element", ["short", "long enough to be a part of its own " * 8])
def test_an_append_adds_a_bounded_number_of_parts(element: str) -> None:
    texts: dict[str, str] = {}
    values = [f"{number} {element}" for number in range(200)]
    parts.split(values, texts)
    for number in range(200, 400):
        before = set(texts)
        values.append(f"{number} {element}")
        node = parts.split(values, texts)
        assert len(texts.keys() - before) <= 2
        assert len(write(node)) < 16_384


def test_pages_are_sealed() -> None:
    values = [f"{number} " * 100 for number in range(10 * parts.PAGE_NODES)]
    sealed: list[str] = []
    for length in range(1, len(values) + 1):
        items = parts.split(values[:length], {})["l"]
        pages = [item["g"] for item in items if "g" in item]
        assert pages[: len(sealed)] == sealed
        assert len(pages) == (length // parts.PAGE_NODES if length > parts.PAGE_NODES else 0)
        assert len(items) - len(pages) <= parts.PAGE_NODES
        sealed = pages


def test_equal_values_are_kept_once() -> None:
    texts: dict[str, str] = {}
    parts.split_object({"a": ["same " * 100] * 5, "b": "same " * 100}, texts)
    assert len(texts) == 1


@pytest.mark.parametrize("character", ["x", "é", "€", "\U0001f600"])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_a_part_holds_exactly_its_bound_and_one_byte_more_is_cut(character: str, beyond: int) -> None:
    size = len(character.encode())
    room = parts.PART_BYTES - len('""')
    count = room // size - 1
    text = character * count + "x" * (room - size * count + beyond)
    texts: dict[str, str] = {}
    node = parts.split(text, texts)
    assert len(write(text).encode()) == parts.PART_BYTES + beyond
    assert ("p" in node, "c" in node) == (beyond <= 0, beyond > 0)
    assert parts.join(node, texts.__getitem__) == write(text)
    assert all(len(part.encode()) <= parts.PART_BYTES for part in texts.values())


@pytest.mark.parametrize("characters", [1, 65_535, 65_536, 65_537, 131_072, 300_000])
def test_no_piece_of_a_large_text_is_over_the_bound(characters: int) -> None:
    for filling in ("\U0001f600", '"', "a\U0001f600"):
        value = [{"text": filling * characters}]
        texts: dict[str, str] = {}
        node = parts.split(value, texts)
        assert all(len(part.encode()) <= parts.PART_BYTES for part in texts.values())
        assert parts.join(node, texts.__getitem__) == write(value)
        assert parts.reachable([node], texts.__getitem__) == texts.keys()


def test_pages_are_opened_once_each() -> None:
    texts: dict[str, str] = {}
    nodes = [parts.split([f"{number} " * 100 for number in range(64 + more)], texts) for more in range(5)]
    asked: list[str] = []

    def part(address: str) -> str:
        asked.append(address)
        return texts[address]

    assert parts.reachable(nodes, part) == texts.keys()
    assert len(asked) == len(set(asked)) == 2


def test_an_address_is_22_characters_of_base64url() -> None:
    assert parts.address('"a"') == parts.address('"a"') != parts.address('"b"')
    assert len(parts.address("")) == 22
    assert set("".join(parts.address(str(number)) for number in range(200))) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    )


@pytest.mark.parametrize("node", [{}, {"q": 1}, {"g": "a"}, {"=": 1, "p": "a"} | {"=": 1, "x": 2}])
def test_what_is_no_node_cannot_be_joined_unseen(node: parts.Node) -> None:
    assert not parts.well_formed(node)


def test_joining_what_is_no_node_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a node: an object with the keys"):
        parts.join({"q": 1}, {}.__getitem__)


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("[]", True),
        ('[{"=":1},{"p":"a"},{"c":["a","b"]}]', True),
        ('[{"l":[]}]', False),
        ('[{"g":"a"}]', False),
        ("[1]", False),
        ("{}", False),
        ("[", False),
    ],
)
def test_a_page_is_a_list_of_element_nodes(text: str, readable: bool) -> None:
    assert parts.well_formed_page(text) is readable
