"""Shapes of JSON in which a name and its secret stand apart, and shapes that only look like a secret.

Belongs here: name/value objects, selectors, pairs, JSON Schema, placeholders, and members left alone. Does
not belong here: judging a name (`secret_names`) and the walk that comes upon the shapes (`redaction`).
"""

from __future__ import annotations

import re
from typing import Any, cast

from runmemory_core.policy.secret_names import Secrecy, secrecy

LABELS = ("name", "key", "header", "selector", "field")
_SELECTOR_PUNCTUATION = re.compile(r"[#.\[\]=>\s:'\"()+~*^$|,]+")
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


def is_value_key(key: str) -> bool:
    """Whether the name of the member under this key may stand beside it, as a label."""
    return key.lower().endswith(("value", "values"))


def member_secrecy(parent: str, key: str) -> Secrecy:
    """How secret a member of the value of the secret ``parent`` is: its `id` is not, its `value` is."""
    judged = secrecy(f"{parent}_{key}")
    return max(judged, secrecy(f"{key}_tokens")) if parent.lower() == "token" else judged


def label_secrecy(key: str, label: str) -> Secrecy:
    """How secret the value beside a label is; of a CSS selector each part may be the name."""
    if not key.lower().endswith("selector"):
        return secrecy(label)
    parts = _SELECTOR_PUNCTUATION.split(label[:200])
    return max(secrecy(_SELECTOR_FIELD.sub("", part)) for part in parts)


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


def is_pairs(items: list[Any]) -> bool:
    """Whether a list is headers or fields written as [name, value]."""
    return all(type(item) is list and len(item) == 2 and type(item[0]) is str for item in items)
