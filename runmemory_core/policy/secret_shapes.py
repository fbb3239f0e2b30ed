"""Shapes of JSON in which a name and its secret stand apart, and shapes that only look like a secret.

Belongs here: name/value objects, selectors, pairs, JSON Schema, placeholders, and members left alone. Does
not belong here: judging a name (`secret_names`) and the walk that comes upon the shapes (`redaction`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

from runmemory_core.policy.secret_formats import is_template
from runmemory_core.policy.secret_names import Secrecy, secrecy, split_words

LABELS = ("name", "key", "header", "selector", "field", "variable", "parameter", "setting", "label")
_TYPED = frozenset({"text", "Text"})
LONG_NUMBER = 10_000_000
"""No card has a smaller number."""
_FLAG = re.compile(r"--?[A-Za-z][\w\-]{1,63}+")
_ISSUE = re.compile(r"[A-Z][A-Z0-9]{0,9}-[0-9]{1,7}")
_BEGINS_SELECTOR = re.compile(r"//|[#.\[][A-Za-z_\-]|[a-z]{1,20}[#.\[][A-Za-z_\-]")
MAX_SELECTOR_CHARACTERS = 200
_SELECTOR_PUNCTUATION = re.compile(r"[#.\[\]=>\s:'\"()+~*^$|,/@]+")
_SELECTOR_FIELD = re.compile(r"[-_]?(?:field|input|box)\Z", re.IGNORECASE)
LIKELIHOODS = frozenset(
    {"logprob", "logprobs", "top_logprobs", "token_str", "token_id", "prob", "probability"}
)
# Opaque to us and signed or encrypted by others, or an id by which a run is found again.
UNTOUCHED = frozenset(
    {
        *("signature", "thoughtSignature", "thought_signature", "encrypted_content", "encryptedContent"),
        *("session_id", "sessionId", "thread_id", "threadId", "checkpoint_id", "checkpointId"),
    }
)
SAYS_HOW = frozenset(
    {
        *("none", "basic", "bearer", "digest", "oauth", "oauth2", "oidc", "jwt", "required", "optional"),
        *("read", "write", "true", "false", "yes", "no", "enabled", "disabled"),
    }
)
_JSON_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
SCHEMA_CHOICES = frozenset({"anyOf", "oneOf", "allOf", "items"})
SCHEMA_VALUES = ("default", "const", "example", "examples")
_SCHEMA_WORDS = SCHEMA_CHOICES | {
    *(
        "$ref",
        "type",
        "title",
        "description",
        "format",
        "enum",
        "nullable",
        "deprecated",
        "readOnly",
        "writeOnly",
    ),
    *(
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "properties",
        "required",
        "additionalProperties",
    ),
    *(
        "minItems",
        "maxItems",
        "uniqueItems",
        "$defs",
        "not",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "strict",
    ),
    *SCHEMA_VALUES,
}


def typed_keys(keys: set[str]) -> set[str]:
    """The keys under which the text stands that is typed into what a selector beside it selects."""
    typed = keys & _TYPED
    return typed if typed and any(map(_is_selector, keys)) else set()


def _is_selector(key: str) -> bool:
    return key.lower().endswith("selector")


def is_value_key(key: str) -> bool:
    """Whether the name of the member under this key may stand beside it, as a label."""
    return key.lower().endswith(("value", "values"))


def member_secrecy(parent: str, key: str) -> Secrecy:
    """How secret a member of the value of the secret ``parent`` is: its `id` is not, its `value` is."""
    judged = secrecy(f"{parent}_{key}")
    return max(judged, secrecy(f"{key}_tokens")) if parent.lower() == "token" else judged


def label_secrecy(key: str, label: str, value_key: str) -> Secrecy:
    """How secret the ``value_key`` beside a label is; of a CSS selector each part may be the name."""
    if value_key in _TYPED and not _is_selector(key):
        return Secrecy.NONE
    if not _is_selector(key):
        return secrecy(label)
    parts = _SELECTOR_PUNCTUATION.split(label[:MAX_SELECTOR_CHARACTERS])
    return max(secrecy(_SELECTOR_FIELD.sub("", part)) for part in parts)


def is_number_of(judged: Secrecy, value: object) -> bool:
    """Whether a value is a number that a name takes with it."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return judged is Secrecy.NUMBERS_TOO or abs(value) >= LONG_NUMBER


def is_no_value(judged: Secrecy, name: str, text: str) -> bool:
    """Whether a text under the name of a secret is none: a word or a ticket for how, or a selector of its field."""
    if judged is Secrecy.STRINGS and (text.lower() in SAYS_HOW or _ISSUE.fullmatch(text)):
        return True
    if len(text) > MAX_SELECTOR_CHARACTERS or not _BEGINS_SELECTOR.match(text):
        return False
    head = split_words(name)[-1:]
    return any(
        split_words(_SELECTOR_FIELD.sub("", part))[-1:] == head for part in _SELECTOR_PUNCTUATION.split(text)
    )


def is_schema(value: object, *, is_property: bool) -> bool:
    """Whether a member describes a value instead of holding one."""
    if type(value) is not dict:
        return False
    members = cast("dict[str, Any]", value)
    kind = members.get("type")
    is_typed = kind in _JSON_TYPES if isinstance(kind, str) else isinstance(kind, list)
    is_typed = is_typed or not {"$ref", "anyOf", "oneOf", "allOf", "enum", "const"}.isdisjoint(members)
    return is_typed and (is_property or members.keys() <= _SCHEMA_WORDS)


def is_placeholder(value: object) -> bool:
    """LangChain's stand-in for a secret: it holds the name of an environment variable."""
    if type(value) is not dict:
        return False
    members = cast("dict[str, Any]", value)
    names = members.get("id")
    return (
        members.get("lc") == 1
        and members.get("type") == "secret"
        and members.keys() <= {"lc", "type", "id", "name"}
        and isinstance(names, list)
        and all(isinstance(name, str) and name.isidentifier() for name in cast("list[Any]", names))
    )


def flag_secrecy(text: str) -> Secrecy:
    """How secret what follows a command's argument such as `--api-key` is."""
    return secrecy(text.lstrip("-")) if _FLAG.fullmatch(text) else Secrecy.NONE


def name_arguments(arguments: list[Any], flags: Mapping[str, Secrecy]) -> dict[int, Secrecy]:
    """The places in a list of arguments that a flag before them names."""
    named: dict[int, Secrecy] = {}
    for place, (flag, value) in enumerate(pairwise(arguments), 1):
        if type(flag) is str and flag in flags and type(value) is str and not _is_left_out(value):
            named[place] = flags[flag]
    return named


def _is_left_out(value: str) -> bool:
    return value.startswith("-") or is_template(value)


def is_pairs(items: list[Any]) -> bool:
    """Whether a list is headers or fields written as [name, value]."""
    return all(type(item) is list and len(item) == 2 and type(item[0]) is str for item in items)
