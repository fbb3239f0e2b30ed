"""Run Memory: save a checkpoint after every step; after a crash, resume instead of starting over.

This is the public API. Importing it loads no HTTP library, no SQLite and no server: the parts load on use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runmemory_core.errors import (
    AccountRequired,
    AdapterRun,
    BodyTooLarge,
    CheckpointGone,
    CredentialInName,
    IdempotencyKeyReused,
    InvalidJson,
    InvalidRequest,
    MalformedBody,
    NotFound,
    OverQuota,
    RunDeleted,
    RunFinished,
    RunMemoryError,
    SeqConflict,
    StaleAttempt,
    StateTooLarge,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    Unauthorized,
    Unavailable,
    WrongOrigin,
)
from runmemory_core.model import RELEASE

if TYPE_CHECKING:
    from runmemory_core.client import AsyncClient, AsyncRun, Client, Run

__version__ = RELEASE

__all__ = [
    "AccountRequired",
    "AdapterRun",
    "AsyncClient",
    "AsyncRun",
    "BodyTooLarge",
    "CheckpointGone",
    "Client",
    "CredentialInName",
    "IdempotencyKeyReused",
    "InvalidJson",
    "InvalidRequest",
    "MalformedBody",
    "NotFound",
    "OverQuota",
    "Run",
    "RunDeleted",
    "RunFinished",
    "RunMemoryError",
    "SeqConflict",
    "StaleAttempt",
    "StateTooLarge",
    "StoreBusy",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreTooNew",
    "Unauthorized",
    "Unavailable",
    "WrongOrigin",
]

_LATER = frozenset({"AsyncClient", "AsyncRun", "Client", "Run"})


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from runmemory_core import client  # noqa: PLC0415 - loaded on first use

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
