"""A lock between processes: held by one of them, let go of when its process ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


_open: set[int] = set()
"""Descriptors of lock files: a forked child shares them, and would hold on to what its parent lets go of."""


@contextmanager
def locked(path: Path, *, wait: bool) -> Generator[bool]:
    """Hold the lock at ``path``; with ``wait`` off, yields whether it was free."""
    with path.open("a") as file:
        path.chmod(0o600)
        descriptor = file.fileno()
        _open.add(descriptor)
        try:
            yield _acquire(descriptor, wait=wait)
        finally:
            _open.discard(descriptor)


def _let_go() -> None:
    """Put the null device in place of each: closing it would free its number, which its file object closes later."""
    with Path(os.devnull).open() as nothing:
        for descriptor in _open:
            os.dup2(nothing.fileno(), descriptor)
    _open.clear()


if sys.platform != "win32":  # which has no fork
    os.register_at_fork(after_in_child=_let_go)


def _acquire(descriptor: int, *, wait: bool) -> bool:
    if fcntl is None:
        return _acquire_on_windows(descriptor, wait=wait)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _acquire_on_windows(descriptor: int, *, wait: bool) -> bool:
    import msvcrt  # noqa: PLC0415 - exists there only

    try:
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
