"""The quick look at a value before it is walked: its distinct keys, and the strings worth a close look.

All strings are searched as one text, so that the cost does not grow with their number. Belongs here: what
may need redaction. Does not belong here: what is certain to (`redaction`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, chain
from typing import Any

from runmemory_core.policy import secret_lines, secret_pairs, secret_shapes
from runmemory_core.policy.secret_formats import BOUNDARY, Span, find_credentials
from runmemory_core.policy.secret_names import secrecy

_JSON_OPENS = frozenset('{["\ufeff \n\t\r')
_JSON_KEY = re.compile(r'"([^"\\]{1,120})\\*+"\s{0,8}:')
_PRINTED_KEY = re.compile(r"'([^'\\]{1,120})\\*+':")
_LIST_IN_LIST = re.compile(r"\[(?:\s|\\+[nrt])*+\[")
_MANY_KEYS = 16
_SHORTEST_CREDENTIAL = 12


def survey(holder: dict[str, Any]) -> tuple[set[str], list[str], bool]:
    """The distinct keys and strings, and whether there are lists of two-item lists."""
    keys: set[str] = set()
    strings: list[str] = []
    has_pairs = False
    level: list[Any] = [holder]
    while level:
        dicts: list[dict[str, Any]] = [item for item in level if type(item) is dict]
        lists: list[list[Any]] = [item for item in level if type(item) is list]
        strings += [item for item in level if type(item) is str]
        keys.update(*dicts)
        has_pairs = has_pairs or any(type(item[0]) is list and len(item[0]) == 2 for item in lists if item)
        level = list(chain(*lists, *[item.values() for item in dicts]))
    return keys, list(dict.fromkeys(strings)), has_pairs


def keys_like_credentials(keys: set[str]) -> list[str]:
    """The keys long enough to be credentials themselves."""
    return [key for key in keys if len(key) >= _SHORTEST_CREDENTIAL]


def find_suspects(texts: list[str]) -> dict[str, list[Span]]:
    """The texts that need a close look, and where in them credentials were found by their format."""
    prose = [text for text in texts if text[:1] not in _JSON_OPENS]
    json_like = [text for text in texts if text[:1] in _JSON_OPENS]
    texts = prose + json_like
    whole = BOUNDARY.join(texts)
    suspects: dict[str, list[Span]] = {text: [] for text in _find_json_suspects(json_like)}
    spans = find_credentials(whole)
    spots = [
        *secret_pairs.find_named(whole),
        *secret_pairs.find_quoted_named(BOUNDARY.join(prose)),
        *secret_lines.find_line_named(whole),
    ]
    ends = list(accumulate(len(text) + 1 for text in texts)) if spans or spots else []
    for start, end in spans:
        place = bisect_right(ends, start)
        begin = ends[place] - len(texts[place]) - 1
        suspects.setdefault(texts[place], []).append((start - begin, end - begin))
    for spot in spots:
        suspects.setdefault(texts[bisect_right(ends, spot)], [])
    return suspects


def _find_json_suspects(texts: list[str]) -> set[str]:
    """The texts that may be JSON with a secret in it; escapes and pairs are left to the close look."""
    whole = BOUNDARY.join(texts)
    found = set(_JSON_KEY.findall(whole))
    if "':" in whole:
        found.update(_PRINTED_KEY.findall(whole))
    keys = {key for key in found if secrecy(key) or secret_shapes.is_value_key(key)}
    if "\\u" in whole:
        keys.add("\\u")
    if len(keys) > _MANY_KEYS:  # looking for each in every text would not be linear
        return set(texts)
    suspects = {text for text in texts if any(key in text for key in keys)} if keys else set[str]()
    if _LIST_IN_LIST.search(whole):
        suspects.update(text for text in texts if _LIST_IN_LIST.search(text))
    return suspects
