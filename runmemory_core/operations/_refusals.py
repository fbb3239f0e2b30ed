"""What is wrong with the arguments of a call, in words a caller can act on; what was sent is never shown.

Belongs here: pydantic's findings made into one refusal of bounded size. Does not belong here: what an argument
may be (`_fields`) and the policy rules (`calls`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from runmemory_core.errors import InvalidRequest
from runmemory_core.policy.pointers import POINTERS_SHOWN, child_pointer
from runmemory_core.policy.redaction import contains_credential
from runmemory_core.policy.secret_formats import MARKER

FAULTS_NAMED = 5
NAME_SHOWN_CHARACTERS = 40


def drop_surplus(arguments: dict[str, Any], known: Iterable[str]) -> int:
    """Take out the unknown arguments that a refusal would not show, and say how many those were."""
    surplus = list(islice((name for name in arguments if name not in known), POINTERS_SHOWN, None))
    for name in surplus:
        del arguments[name]
    return len(surplus)


def refusal(operation: str, known: Iterable[str], error: ValidationError, *, surplus: int) -> InvalidRequest:
    """The refusal of a call: fifty of the findings and a count of all, the first few of them in the text."""
    total = error.error_count() + surplus
    pointers: dict[str, str] = {}
    named: dict[str, None] = {}
    for details in islice(error.errors(include_url=False), POINTERS_SHOWN):
        way = [_shown_name(part) for part in details["loc"]] or ["request"]
        fault = _fault(operation, known, details)
        pointers[reduce(child_pointer, way, "")] = fault
        if len(named) < FAULTS_NAMED:
            named[f"{'.'.join(map(str, way))} {fault}"] = None
    more = total - len(named)
    detail = "; ".join(named) + (f"; and {more:,} more" if more and total > FAULTS_NAMED else "")
    return InvalidRequest(
        detail, pointers=pointers, **({"error_count": total} if total > len(pointers) else {})
    )


def _shown_name(part: str | int) -> str | int:
    """A name as it may be shown: it is the caller's and may be a credential, or a megabyte."""
    if isinstance(part, int):
        return part
    if contains_credential(part):
        return MARKER
    return part if len(part) <= NAME_SHOWN_CHARACTERS else f"{part[:NAME_SHOWN_CHARACTERS]}…"


def _fault(operation: str, known: Iterable[str], details: ErrorDetails) -> str:
    bounds = details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden" if len(details["loc"]) == 1:
            fault = f"is not an argument of {operation}; it takes {', '.join(known) or 'no arguments'}"
        case "extra_forbidden":
            fault = f"is nothing that {operation} takes there"
        case "missing":
            fault = f"is required by {operation}"
        case "string_too_long" | "string_too_short":
            bound = bounds.get("max_length", bounds.get("min_length"))
            side = "at most" if "max_length" in bounds else "at least"
            fault = f"has {len(details['input']):,} characters; it takes {side} {bound}"
        case "string_unicode":
            fault = "holds half a surrogate pair; it takes Unicode text: replace or remove that character"
        case "too_long":
            fault = f"has {bounds['actual_length']:,} items; it takes at most {bounds['max_length']:,}"
        case _:
            message = details["msg"].removeprefix("Input ").removeprefix("Value ")
            fault = message[:1].lower() + message[1:]
    return fault
