"""States as small content-addressed parts, so that a growing state costs what is new in it.

A *node* is a small JSON object that stands for a value:

- ``{"=": value}``: the value itself, up to about 200 bytes of JSON;
- ``{"p": address}``: a part that holds the value's JSON text;
- ``{"l": [node, …]}``: a list by element. An item ``{"g": address}`` is a page: a part that holds the JSON
  list of 32 nodes. Full pages never change, so an append adds one element part and the short tail;
- ``{"c": [address, …]}``: JSON text over the size of a part, cut into pieces;
- ``{"o": [[name, node], …]}``: an object by member, at the top only.

An address is a hash of the part's text, so equal values are stored once. Pure functions of values; where
parts are kept is the store's business.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, cast

from pydantic_core import from_json

from runmemory_core.policy.json_rules import write

Node = dict[str, Any]

INLINE_CHARACTERS = 200
PAGE_NODES = 32
PART_BYTES = 262_144
# A character is at most 4 bytes in UTF-8; cutting by characters keeps every piece valid text.
CHUNK_CHARACTERS = PART_BYTES // 4


def address(text: str) -> str:
    """The 22 characters that name a part: base64url of a 128-bit BLAKE2b of its UTF-8 text."""
    return urlsafe_b64encode(blake2b(text.encode(), digest_size=16).digest())[:22].decode()


def split(value: Any, parts: dict[str, str]) -> Node:
    """The node of a JSON ``value``; texts too long to stand in it are added to ``parts`` by address."""
    text = write(value)
    if isinstance(value, list) and len(text) > INLINE_CHARACTERS:
        return {"l": paged([of_text(write(item), parts) for item in cast("list[Any]", value)], parts)}
    return of_text(text, parts)


def split_object(members: Mapping[str, Any], parts: dict[str, str]) -> Node:
    """The node of a whole state, each member on its own."""
    return {"o": [[name, split(value, parts)] for name, value in members.items()]}


def of_text(text: str, parts: dict[str, str]) -> Node:
    """The node of one undivided JSON ``text``."""
    if len(text) <= INLINE_CHARACTERS:
        return {"=": from_json(text)}
    if len(text) <= CHUNK_CHARACTERS or len(text.encode()) <= PART_BYTES:
        return {"p": _add(text, parts)}
    pieces = (text[i : i + CHUNK_CHARACTERS] for i in range(0, len(text), CHUNK_CHARACTERS))
    return {"c": [_add(piece, parts) for piece in pieces]}


def paged(nodes: list[Node], parts: dict[str, str]) -> list[Node]:
    """``nodes`` with each full run of 32 folded into a page."""
    full = full_pages(len(nodes))
    return [page(nodes[i : i + PAGE_NODES], parts) for i in range(0, full, PAGE_NODES)] + nodes[full:]


def full_pages(count: int) -> int:
    """How many of ``count`` nodes go into pages: whole ones only, and none while all fit into one."""
    return count - count % PAGE_NODES if count > PAGE_NODES else 0


def page(nodes: list[Node], parts: dict[str, str]) -> Node:
    """The item that stands for 32 nodes of a list."""
    return {"g": _add(write(nodes), parts)}


def _add(text: str, parts: dict[str, str]) -> str:
    where = address(text)
    parts[where] = text
    return where


def join(node: Node, part: Callable[[str], str]) -> str:
    """The JSON text that ``node`` stands for; ``part`` returns the text at an address."""
    match node:
        case {"=": value}:
            return write(value)
        case {"p": where}:
            return part(where)
        case {"c": pieces}:
            return "".join(map(part, pieces))
        case {"l": items}:
            return "[" + ",".join(join(item, part) for item in unpaged(items, part)) + "]"
        case {"o": members}:
            return "{" + ",".join(f"{write(name)}:{join(inner, part)}" for name, inner in members) + "}"
        case _:
            raise ValueError(f"not a node: an object with the keys {sorted(node)}")


def measure(node: Node, bytes_of: Callable[[str], int], bytes_of_page: Callable[[str], int]) -> int:
    """The bytes of what `join` would return; ``bytes_of_page`` returns what `measure_elements` said of a page."""
    match node:
        case {"=": value}:
            return len(write(value).encode())
        case {"p": where}:
            return bytes_of(where)
        case {"c": pieces}:
            return sum(map(bytes_of, pieces))
        case {"l": items}:
            pages = sum(bytes_of_page(item["g"]) for item in items if "g" in item)
            return 1 + max(1, pages + measure_elements([item for item in items if "g" not in item], bytes_of))
        case {"o": members}:
            inner = (measure(value, bytes_of, bytes_of_page) for _, value in members)
            names = sum(len(write(name).encode()) + 2 for name, _ in members)
            return 1 + max(1, names + sum(inner))
        case _:
            raise ValueError(f"not a node: an object with the keys {sorted(node)}")


def measure_elements(nodes: Sequence[Node], bytes_of: Callable[[str], int]) -> int:
    """The bytes that the element ``nodes`` add to a list, each with a comma or bracket after it."""
    return len(nodes) + sum(measure(node, bytes_of, bytes_of) for node in nodes)


def unpaged(items: Iterable[Node], part: Callable[[str], str]) -> Iterator[Node]:
    """The element nodes of a list node, pages opened."""
    for item in items:
        if "g" in item:
            yield from from_json(part(item["g"]))
        else:
            yield item


def direct_addresses(node: Node) -> Iterator[str]:
    """The addresses that ``node`` names itself, without looking into pages."""
    match node:
        case {"p": where} | {"g": where}:
            yield where
        case {"c": pieces}:
            yield from pieces
        case {"l": items}:
            for item in items:
                yield from direct_addresses(item)
        case {"o": members}:
            for _, inner in members:
                yield from direct_addresses(inner)
        case _:
            return


def pages(node: Node) -> Iterator[str]:
    """The addresses of the pages that ``node`` names."""
    for item in node.get("l", ()):
        if "g" in item:
            yield item["g"]
    members: list[tuple[str, Node]] = node.get("o", [])
    for _, inner in members:
        yield from pages(inner)


def page_addresses(text: str) -> Iterator[str]:
    """The addresses that a page names; ``text`` is the page's part."""
    for node in from_json(text):
        yield from direct_addresses(node)


def reachable(nodes: Iterable[Node], part: Callable[[str], str]) -> set[str]:
    """Every address that ``nodes`` need, pages opened once each."""
    found: set[str] = set()
    opened: set[str] = set()
    for node in nodes:
        found.update(direct_addresses(node))
        for page in pages(node):
            if page not in opened:
                opened.add(page)
                found.update(page_addresses(part(page)))
    return found


def well_formed(node: Mapping[str, Any]) -> bool:
    """Whether ``node`` has one of the forms above (its addresses are checked elsewhere)."""
    match node:
        case {"=": _} if len(node) == 1:
            return True
        case {"p": str()} if len(node) == 1:
            return True
        case {"c": [*pieces]} if len(node) == 1:
            return all(isinstance(piece, str) for piece in pieces)
        case {"l": [*items]} if len(node) == 1:
            return all(_is_page(item) or _is_element(item) for item in cast("list[object]", items))
        case _:
            return False


def well_formed_page(text: str) -> bool:
    """Whether the part ``text`` can be read as a page."""
    try:
        nodes = from_json(text)
    except ValueError:
        return False
    return isinstance(nodes, list) and all(_is_element(node) for node in cast("list[object]", nodes))


def _is_page(item: object) -> bool:
    match item:
        case {"g": str()}:
            return len(cast("Node", item)) == 1
        case _:
            return False


def _is_element(item: object) -> bool:
    return isinstance(item, dict) and "l" not in item and well_formed(cast("Node", item))
