"""From arguments to a `Call`: validated, redacted, measured. Done by the client and again by the service.

A `Call` is the only thing the engine takes, so nothing reaches the store that did not pass these rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from runmemory_core.errors import CredentialInName, InvalidJson, InvalidRequest, MalformedBody, StateTooLarge
from runmemory_core.model import Limits
from runmemory_core.operations import OPERATIONS, Operation
from runmemory_core.operations._fields import Request
from runmemory_core.operations.storage import Commit
from runmemory_core.operations.tools import ERROR_CHARACTERS, Resume, SaveCheckpoint
from runmemory_core.policy.json_rules import (
    big_integers,
    canonical,
    child_pointer,
    parse,
    walk,
    write,
)
from runmemory_core.policy.redaction import (
    MAX_POINTER_CHARACTERS,
    contains_credential,
    redact,
    redact_message,
)
from runmemory_core.policy.secret_formats import MARKER

REMOVED_SHOWN = 50
POINTERS_NAMED = 5
STRING_STATE = "state was a string that holds a JSON object; it was taken as that object"


@dataclass(frozen=True, slots=True)
class PreparedState:
    """A state as it will be kept: redacted compact JSON ``text``, its UTF-8 ``size``, what was removed."""

    text: str
    size: int
    keys: tuple[str, ...]
    removed: tuple[str, ...] = ()

    def check_size(self, limits: Limits) -> None:
        """Raise `StateTooLarge` with both numbers when the state is over the limit."""
        if self.size > limits.state_bytes:
            raise StateTooLarge(
                f"state is {self.size:,} bytes after redaction; the limit is {limits.state_bytes:,}: "
                "keep large results elsewhere and save their ids",
                size=self.size,
                limit=limits.state_bytes,
            )


@dataclass(frozen=True, slots=True)
class Call:
    """One checked request; ``state`` is set where the operation carries one.

    ``redacts`` tells the engine to look through the parts of a commit too; only embedded callers turn it off.
    """

    operation: Operation
    request: Request
    state: PreparedState | None = None
    notices: tuple[str, ...] = ()
    redacts: bool = True


def prepare(name: str, arguments: Mapping[str, Any], *, redacts: bool = True, parsed: bool = False) -> Call:
    """Check ``arguments`` against the operation ``name`` and apply the policy rules to them.

    ``redacts=False`` keeps states as they are; only the embedded client may ask for it. ``parsed`` says that the
    arguments were just read from JSON, so that a state needs no copy.
    Raises `InvalidRequest`, `InvalidJson`, `CredentialInName`, or for an unknown name `InvalidRequest`.
    """
    operation = OPERATIONS.get(name)
    if operation is None:
        raise InvalidRequest(f"there is no operation {name!r}; there are {', '.join(OPERATIONS)}")
    arguments = dict(arguments)
    carries_state = name == "save_checkpoint"
    given = arguments.pop("state", None) if carries_state else None
    request = _validated(operation, arguments)
    _refuse_credentials(arguments)
    if isinstance(request, Commit):
        for number, change in enumerate(request.operations):
            _refuse_credentials({"step": change.step}, under=f"operations/{number}/")
    if isinstance(request, SaveCheckpoint):
        request = _checked_save(request, redacts=redacts)
    if isinstance(request, Resume):
        _check_resume(request)
    if not parsed and operation.group == "store":
        _check_json(request)
    if given is None:
        return Call(operation, request, redacts=redacts)
    notices: tuple[str, ...] = ()
    if isinstance(given, str):
        given, notices = _state_in_string(given), (STRING_STATE,)
    state = prepare_state(given, redacts=redacts, parsed=parsed or bool(notices))
    return Call(operation, request, state, notices + _rounded_elsewhere(state), redacts)


def _rounded_elsewhere(state: PreparedState) -> tuple[str, ...]:
    """A notice of integers that are kept exactly, and that other readers of JSON round."""
    places = big_integers(state.text)
    if not places:
        return ()
    counted = "an integer" if len(places) == 1 else f"{len(places):,} integers"
    more = " and more" if len(places) > POINTERS_NAMED else ""
    shown = ", ".join(map(_pointer_to, places[:POINTERS_NAMED])) + more
    notice = (
        f"state has {counted} beyond 2^53 ({shown}): kept exactly, but JavaScript and many other readers of JSON "
        "round such numbers: send strings where one of these reads the state"
    )
    return (notice,)


def _checked_save(request: SaveCheckpoint, *, redacts: bool) -> SaveCheckpoint:
    """The save with credentials removed from ``error``; one in an id of ``done`` is refused, since ids are names."""
    if contains_credential("\n".join(request.done or ())):
        number = next((n for n, item in enumerate(request.done or ()) if contains_credential(item)), 0)
        raise _credential(f"done/{number}", f"done.{number}")
    if request.error is None or not redacts:
        return request
    return request.model_copy(update={"error": redact_message(request.error)[:ERROR_CHARACTERS]})


def _check_resume(request: Resume) -> None:
    """Raise `InvalidRequest` for arguments that contradict each other."""
    other = "peek" if request.peek else "seq" if request.seq is not None else None
    if request.start_over and other is not None:
        meaning = "only looks" if other == "peek" else "asks for one checkpoint"
        raise InvalidRequest(
            f"start_over begins the run anew and {other} {meaning}: send one of the two",
            pointers={"/start_over": f"contradicts {other}", f"/{other}": "contradicts start_over"},
        )


def _check_json(request: Request) -> None:
    """Raise `InvalidJson` for what JSON cannot hold; a body that came over HTTP was read from JSON already."""
    values: list[tuple[str, Any]] = [("/metadata", getattr(request, "metadata", None))]
    if isinstance(request, Commit):
        for number, change in enumerate(request.operations):
            where = f"/operations/{number}"
            values += [(where, [change.lane, change.key, change.step, change.task_id, change.task_path])]
            values += [(f"{where}/metadata", change.metadata), (f"{where}/extra", change.extra)]
            values += [(f"{where}/state", [channel, node]) for channel, node in change.state]
            values += [(f"{where}/writes", [channel, node]) for _, channel, node in change.writes]
        values += [(f"/parts/{name}", text) for name, text in request.parts.items() if not text.isascii()]
    given = [value for _, value in values]
    try:
        if from_json(write(given), allow_inf_nan=False) == given:
            return
    except (ValueError, TypeError, RecursionError):
        pass  # the loop below says what and where
    for pointer, value in values:
        canonical(value, pointer=pointer)


def prepare_state(state: object, *, redacts: bool = True, parsed: bool = False) -> PreparedState:
    """The redacted compact text of ``state``; raises `InvalidJson` with the pointer of what JSON lacks."""
    if not isinstance(state, dict):
        kind = type(state).__name__
        raise InvalidJson(
            f'state is a {kind}; it must be a JSON object such as {{"cursor": 312}}',
            pointers={"/state": f"a JSON object is needed, not {kind}"},
        )
    text, value = canonical(state, pointer="/state", parsed=parsed)
    removed: tuple[str, ...] = ()
    if redacts:
        redacted = redact(value, pointer="/state")
        if redacted.removed:
            removed = tuple(pointer.removeprefix("/state") for pointer in redacted.removed)
            text, value = canonical(redacted.value, pointer="/state")
        if MARKER in text:
            # What the client removed before sending, or an earlier save, is no less missing here.
            removed = tuple(dict.fromkeys((*removed, *_marked(value))))
    return PreparedState(text, len(text.encode()), tuple(value), removed)


def _marked(value: Any) -> Iterator[str]:
    """Pointers of the texts and members that hold the marker, in document order."""
    for path, item in walk(value):
        if (path and MARKER in str(path[-1])) or (isinstance(item, str) and MARKER in item):
            yield _pointer_to(path)


def _pointer_to(path: Iterable[str | int]) -> str:
    """The pointer to a place, or to the nearest container where it would get longer than redaction makes one."""
    pointer = ""
    for key in path:
        longer = (
            None
            if isinstance(key, str) and len(key) > MAX_POINTER_CHARACTERS
            else child_pointer(pointer, key)
        )
        if longer is None or len(longer) > MAX_POINTER_CHARACTERS:
            break
        pointer = longer
    return pointer


def _state_in_string(text: str) -> object:
    try:
        return parse(text, field="/state")
    except MalformedBody:
        raise InvalidJson(
            "state is a string that is not a JSON object: send the object itself",
            pointers={"/state": "a JSON object is needed, not a string"},
        ) from None


def _validated(operation: Operation, arguments: dict[str, Any]) -> Request:
    try:
        return operation.request.model_validate(arguments)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        found = dict(_finding(operation, details) for details in errors)
        pointers = {
            reduce(child_pointer, details["loc"] or ("request",), ""): _finding(operation, details)[1]
            for details in errors
        }
        detail = "; ".join(f"{where} {words}" for where, words in list(found.items())[:5])
        raise InvalidRequest(detail, pointers=pointers) from None


def _refuse_credentials(arguments: Mapping[str, Any], *, under: str = "") -> None:
    for name in ("idempotency_key", "run_id", "step", "next_step", "job", "target_run_id"):
        value = arguments.get(name)
        if isinstance(value, str) and contains_credential(value):
            raise _credential(f"{under}{name}", name)


def _credential(pointer: str, name: str) -> CredentialInName:
    return CredentialInName(
        f"{name} contains a credential; names are shown in lists and logs: use a plain label",
        pointers={f"/{pointer}": "contains a credential"},
    )


def _finding(operation: Operation, details: ErrorDetails) -> tuple[str, str]:
    """Where and what one of pydantic's findings is, in words; the value itself is never shown."""
    where = ".".join(str(part) for part in details["loc"]) or "request"
    match details["type"]:
        case "extra_forbidden":
            known = ", ".join(operation.request.model_fields) or "no arguments"
            return where, f"is not an argument of {operation.name}; it takes {known}"
        case "missing":
            return where, f"is required by {operation.name}"
        case "string_too_long" | "string_too_short":
            bounds = details.get("ctx", {})
            bound = bounds.get("max_length", bounds.get("min_length"))
            side = "at most" if "max_length" in bounds else "at least"
            return where, f"has {len(details['input'])} characters; it takes {side} {bound}"
        case "too_long":
            bounds = details.get("ctx", {})
            return where, f"has {bounds['actual_length']:,} items; it takes at most {bounds['max_length']:,}"
        case _:
            message = details["msg"].removeprefix("Input ").removeprefix("Value ")
            return where, message[:1].lower() + message[1:]
