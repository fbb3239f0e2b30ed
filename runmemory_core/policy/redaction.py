"""Secrets out of a JSON value before it is kept: which members go, where, and what is reported.

A value is surveyed first, with the work left to C: its distinct keys are judged, its strings are searched
as one text. Only a value with something to remove is walked. Belongs here: the walk and the shapes it knows
(named members, name/value objects, header pairs, JSON Schema). Does not belong here: judging a name
(`secret_names`), finding credentials in text (`secret_formats`, `secret_pairs`), splicing (`nested_json`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from runmemory_core.policy import (
    nested_json,
    secret_formats,
    secret_lines,
    secret_pairs,
    secret_shapes,
    secret_survey,
)
from runmemory_core.policy.pointers import MAX_POINTER_CHARACTERS, Place, point_at
from runmemory_core.policy.secret_formats import MARKER, Span
from runmemory_core.policy.secret_names import Secrecy, secrecy

Mode = Literal["full", "names"]
MAX_REPORT_CHARACTERS = 64 * MAX_POINTER_CHARACTERS
"""So much is pointed at; what is done beyond that is done without a word, so that reports stay small."""


CACHED_LABEL_CHARACTERS = 200
"""Answers for longer texts, such as a whole list of finished ids, are not remembered."""


class Redacted(NamedTuple):
    """The value without its secrets, and JSON pointers in document order to what was done.

    ``removed`` points at what is now the marker or holds it; ``warned``, in mode ``names`` only, at strings
    that contain a credential and were left as they are.
    """

    value: Any
    removed: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()


class _Cleaned(NamedTuple):
    text: str
    masked: str
    """What mode `full` makes of it: all that may be shown of a key."""


# --- what a caller asks ---------------------------------------------------------------------------------


def names_secret(key: str) -> bool:
    """Whether a value under this name is a secret."""
    return secrecy(key) > Secrecy.NONE


def contains_credential(text: str) -> bool:
    """Whether a text that is shown in lists and logs, such as a run_id, holds a credential."""
    return _label_holds(text) if len(text) <= CACHED_LABEL_CHARACTERS else _holds_credential(text)


@lru_cache(maxsize=2_048)
def _label_holds(text: str) -> bool:
    return _holds_credential(text)


def _holds_credential(text: str) -> bool:
    return _clean(text, "full", secret_formats.find_credentials(text)).text != text


def redact_message(text: str) -> str:
    """The words of an error without credentials: here a name and a sign give away a value in any sentence."""
    clean: str = redact(text).value
    return secret_formats.remove_spans(clean, secret_pairs.find_told_values(clean))


def redact(value: Any, *, pointer: str = "", name: str = "", mode: Mode = "full") -> Redacted:
    """A private JSON value, changed in place, without its secrets.

    ``name`` is the key the value stands under elsewhere. Mode ``names`` goes by names and shapes only:
    credentials that only their format gives away stay in the text, and are pointed at.
    """
    holder = {name: value}
    plan = _plan(holder, mode)
    if plan is None:
        return Redacted(value)
    walk = _Walk(plan, pointer)
    walk.run(holder)
    (value,) = holder.values()
    return Redacted(value, tuple(walk.removed), tuple(walk.warned))


# --- the survey -----------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """What the walk has to look for."""

    names: dict[str, Secrecy]
    """The keys that name a secret."""
    cleaned: dict[str, _Cleaned]
    """The strings, and with them the keys, that do not stay as they are."""
    credential_keys: frozenset[str]
    value_keys: frozenset[str]
    label_keys: frozenset[str]
    flags: dict[str, Secrecy]
    """The arguments of commands that name the next one."""


def _plan(holder: dict[str, Any], mode: Mode) -> _Plan | None:
    keys, strings, has_pairs = secret_survey.survey(holder)
    names = {key: judged for key in keys if (judged := secrecy(str.__str__(key)))}
    value_keys = frozenset(key for key in keys if secret_shapes.is_value_key(key))
    value_keys |= secret_shapes.typed_keys(keys)
    label_keys = frozenset(key for key in keys if value_keys and key.lower().endswith(secret_shapes.LABELS))
    suspects = secret_survey.find_suspects([*strings, *secret_survey.keys_like_credentials(keys)])
    flags = {text: judged for text in suspects if (judged := secret_shapes.flag_secrecy(text))}
    cleaned = {text: _clean(text, mode, found) for text, found in suspects.items()}
    cleaned = {text: clean for text, clean in cleaned.items() if text != clean.text or text != clean.masked}
    if names or cleaned or label_keys or has_pairs or flags:
        return _Plan(names, cleaned, frozenset(keys & cleaned.keys()), value_keys, label_keys, flags)
    return None


def _clean(text: str, mode: Mode, found: list[Span]) -> _Cleaned:
    """One text without its secrets: as JSON where it is JSON, else by pairs and the credentials ``found``."""
    tree = nested_json.read(text)
    if tree is not None:
        inner = redact(tree, mode=mode)
        new = nested_json.splice(text, inner.value) if inner.removed else text
        return _Cleaned(new, MARKER if inner.warned else new)
    new = text
    if mode == "names" and (certain := secret_pairs.find_named_values(text, in_prose=False)):
        new = secret_formats.remove_spans(text, certain)
        found = secret_formats.find_credentials(new) if found else []
    named = secret_pairs.find_named_values(new, in_prose=True)
    lines = [*secret_lines.find_lines(new), *secret_lines.find_arguments(new)]
    masked = secret_formats.remove_spans(new, [*found, *named, *lines])
    return _Cleaned(new if mode == "names" else masked, masked)


# --- the walk -------------------------------------------------------------------------------------------


_Container = dict[str, Any] | list[Any]


@dataclass(slots=True, eq=False)
class _Frame(Place):
    """A container being walked."""

    node: _Container
    members: Iterator[tuple[Any, Any]]
    named: Mapping[Any, Secrecy]
    """Members that their name, or a shape, gives away."""
    others: Secrecy = Secrecy.NONE
    inherited: str = ""
    """The name of a secret that this container is the value of."""
    schema: Secrecy = Secrecy.NONE
    """Of the secret that this container is the JSON Schema of."""
    has_pairs: bool = False


class _Walk:
    """One pass over a value in document order."""

    def __init__(self, plan: _Plan, pointer: str) -> None:
        self.removed: list[str] = []
        self.warned: list[str] = []
        self._plan = plan
        self._pointer = pointer
        self._left = MAX_REPORT_CHARACTERS
        self._hot_keys = plan.value_keys.union(plan.names)

    def run(self, holder: dict[str, Any]) -> None:
        cleaned = self._plan.cleaned
        stack = [self._enter(holder, None, "")]
        stack[0].pointer = self._pointer
        while stack:
            frame = stack[-1]
            for key, value in frame.members:
                judged = frame.named.get(key, frame.others)
                if isinstance(value, str):
                    if judged or value in cleaned:
                        self._visit_text(frame, key, value, judged)
                elif isinstance(value, dict | list):
                    if value and (inner := self._visit_container(frame, key, value, judged)):
                        stack.append(inner)
                        break
                elif judged > Secrecy.WHOLE and secret_shapes.is_number_of(judged, value):
                    self._remove(frame, key)
            else:
                stack.pop()
                if self._plan.credential_keys and isinstance(frame.node, dict):
                    self._visit_keys(frame, frame.node)

    def _visit_text(self, frame: _Frame, key: Any, text: str, judged: Secrecy) -> None:
        if judged and text and text != MARKER:
            if not secret_shapes.is_no_value(judged, frame.inherited or str(key), text):
                self._remove(frame, key)
            return
        clean = self._plan.cleaned.get(text)
        if clean is None or key in secret_shapes.UNTOUCHED:
            return
        if clean.masked != clean.text:
            self._report(self.warned, frame, key)
        if clean.text != text:
            self._remove(frame, key, clean.text)

    def _visit_container(self, frame: _Frame, key: Any, value: Any, judged: Secrecy) -> _Frame | None:
        """The frame to go on with, unless the container went whole."""
        if frame.schema and (type(key) is int or key in secret_shapes.SCHEMA_CHOICES):
            return self._enter(value, frame, key, inherited=frame.inherited, schema=frame.schema)
        if not judged and frame.has_pairs:
            pair: list[Any] = value
            named = {1: secrecy(pair[0])}
            return _Frame(frame, key, pair, iter(enumerate(pair)), named, inherited=pair[0])
        if not judged or secret_shapes.is_placeholder(value):
            return self._enter(value, frame, key)
        name: str = frame.inherited or key
        if type(key) is str and frame.inherited:
            name = f"{frame.inherited}_{key}"
        if secret_shapes.is_schema(value, is_property=frame.key == "properties"):
            return self._enter(value, frame, key, inherited=name, schema=judged)
        if judged is Secrecy.STRINGS:
            return self._enter(value, frame, key, inherited=name)
        self._remove(frame, key)
        return None

    def _enter(
        self,
        node: _Container,
        parent: _Frame | None,
        key: Any,
        *,
        inherited: str = "",
        schema: Secrecy = Secrecy.NONE,
    ) -> _Frame:
        if isinstance(node, list):
            others = Secrecy.STRINGS if inherited and not schema else Secrecy.NONE
            has_pairs = isinstance(node[0], list) and secret_shapes.is_pairs(node)
            named_at = secret_shapes.name_arguments(node, self._plan.flags) if self._plan.flags else {}
            items = iter(enumerate(node))
            return _Frame(parent, key, node, items, named_at, others, inherited, schema, has_pairs)
        named: dict[str, Secrecy] = {}
        if schema:
            named = dict.fromkeys(secret_shapes.SCHEMA_VALUES, schema)
        elif inherited or not self._hot_keys.isdisjoint(node):
            named = self._name_members(node, inherited)
        return _Frame(parent, key, node, iter(node.items()), named, Secrecy.NONE, inherited, schema)

    def _name_members(self, node: dict[str, Any], inherited: str) -> dict[str, Secrecy]:
        plan = self._plan
        named = {key: plan.names[key] for key in plan.names.keys() & node.keys()}
        for key in node if inherited else ():
            named[key] = max(secret_shapes.member_secrecy(inherited, key), named.get(key, Secrecy.NONE))
        if "token" in named and not secret_shapes.LIKELIHOODS.isdisjoint(node):
            del named["token"]
        for value_key in plan.value_keys & node.keys():
            labels = [(key, node[key]) for key in plan.label_keys & node.keys()]
            judged = [
                secret_shapes.label_secrecy(key, label, value_key)
                for key, label in labels
                if type(label) is str
            ]
            named[value_key] = max([*judged, named.get(value_key, Secrecy.NONE)])
        return named

    def _visit_keys(self, frame: _Frame, node: dict[str, Any]) -> None:
        """Puts the marker into keys that are credentials; equal keys are numbered so that none is lost."""
        found = {key: self._plan.cleaned[key] for key in node if key in self._plan.credential_keys}
        for key, clean in found.items():
            if clean.masked != clean.text:
                self._report(self.warned, frame, key)
        if all(clean.text == key for key, clean in found.items()):
            return
        members = list(node.items())
        node.clear()
        for number, (key, value) in enumerate(members, 1):
            new = found[key].text if key in found else key
            new = f"{new} {number}" if new in node else new
            node[new] = value
            if new != key:
                self._report(self.removed, frame, new)

    def _remove(self, frame: _Frame, key: Any, remainder: str = MARKER) -> None:
        frame.node[key] = remainder
        self._report(self.removed, frame, key)

    def _report(self, report: list[str], frame: _Frame, key: Any) -> None:
        if self._left > 0:
            pointer, _ = point_at(frame, key, self._name_key)
            self._left -= len(pointer)
            report.append(pointer)

    def _name_key(self, key: str | int) -> str | int:
        """The key as it may be shown: one that is a credential is masked."""
        clean = self._plan.cleaned.get(key) if isinstance(key, str) else None
        return clean.masked if clean else key
