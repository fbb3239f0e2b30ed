"""The files in which writes wait for services: what is in each, and those of other keys that nobody will send."""

from __future__ import annotations

import logging
from pathlib import Path

from runmemory_core.client._spooled import waiting
from runmemory_core.errors import RunMemoryError

logger = logging.getLogger("runmemory")
_known: set[Path] = set()
"""Files that this process uses itself or has told of."""


def key_of(path: Path) -> str:
    """The id of the key with which the writes in a file were saved."""
    return path.stem.rpartition("-")[2]


def waiting_in(path: Path) -> tuple[int, int, int]:
    """How many runs and checkpoints wait in a file, and since when; raises `StoreError` for an unhealthy one."""
    from runmemory_core.store.sqlite import SqliteStore  # noqa: PLC0415 - loaded only when needed

    store = SqliteStore(path)
    try:
        return store.read(waiting)
    finally:
        store.close()


def leave(path: Path) -> None:
    """A file is no longer used here; what is left in it may be told of."""
    _known.discard(path)


def tell_of_others(*own: Path) -> None:
    """Warn, once in a process, of what waits for the same URL under other keys."""
    _known.update(own)
    same_url = f"{own[0].stem.rpartition('-')[0]}-*.db"
    for path in sorted(set(own[0].parent.glob(same_url)) - _known):
        _known.add(path)
        try:
            runs, checkpoints, _ = waiting_in(path)
        except RunMemoryError as error:
            logger.warning("runmemory: what waits in %s cannot be read: %s", path, error)
            continue
        if runs:
            logger.warning(
                "runmemory: %s holds %s checkpoints of %s runs that were saved with another key of this service and "
                "never sent: if the present key replaced that one for the same account, set "
                "RUNMEMORY_PREVIOUS_KEY_ID=%s beside RUNMEMORY_API_KEY",
                path,
                f"{checkpoints:,}",
                f"{runs:,}",
                key_of(path),
            )
