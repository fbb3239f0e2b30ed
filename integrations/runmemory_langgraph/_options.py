"""What `RunMemorySaver` may be told; anything else is refused in words before it can do harm."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from runmemory_core import AccountRequired, Client, InvalidRequest
from runmemory_langgraph._decoding import ClassName

_CHOICES: dict[str, tuple[object, ...]] = {
    "redact": (True, False, "strict"),
    "on_error": ("spool", "raise"),
    "on_conflict": ("warn", "raise"),
}


def check_choices(**given: object) -> None:
    """Raise `InvalidRequest` for an option that is none of its choices: a typing error would leave secrets in."""
    for name, value in given.items():
        choices = _CHOICES[name]
        # 1 equals True, and is none of them all the same.
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            raise InvalidRequest(
                f"{name} is {_shown(value)}; it takes {' or '.join(map(repr, choices))}",
                pointers={f"/{name}": "none of the choices"},
            )


def allowed(allow: Iterable[Any]) -> frozenset[type | ClassName]:
    """The classes of ``allow=``; raises `InvalidRequest` for what names none."""
    if isinstance(allow, type):
        raise InvalidRequest("allow is a class; it takes a list of them", pointers={"/allow": "no list"})
    found = list(allow)
    for entry in found:
        if not isinstance(entry, type) and not _is_name(entry):
            raise InvalidRequest(
                f"allow holds {_shown(entry)}; it takes classes, or pairs of module and name such as "
                '("package.module", "Invoice")',
                pointers={"/allow": "neither class nor pair"},
            )
    return frozenset(found)


def check_place(client: Client, *, redact: object, watch: bool, previews: bool) -> None:
    """Raise for options that do not fit where the client saves."""
    if client.remote and not client.has_key and not watch:
        raise AccountRequired(
            f"{client.where} stores nothing without an API key, and the graph would start over after a "
            "crash: pass api_key=, set RUNMEMORY_API_KEY, or only look with watch=True"
        )
    if client.remote and not redact:
        raise InvalidRequest(
            "redact=False is for embedded stores only: secrets must not leave this machine in clear",
            pointers={"/redact": "must be true for a service"},
        )
    if previews and not watch:
        raise InvalidRequest(
            "local= and on_preview= belong to watch=True", pointers={"/watch": "must be true"}
        )


class Done:
    """What is done already, for those who await it."""

    def __await__(self) -> Generator[None]:
        yield from ()


def _is_name(entry: Any) -> bool:
    match entry:
        case (str(), str()):
            return isinstance(entry, tuple)
        case _:
            return False


def _shown(value: object) -> str:
    return (
        repr(value)
        if isinstance(value, str | int | float | None)
        else f"a value of type {type(value).__name__}"
    )
