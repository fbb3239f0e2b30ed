"""A lock between processes: held by one of them, let go of when its process ends."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextmanager
def locked(path: Path, *, wait: bool) -> Generator[bool]:
    """Hold the lock at ``path``; with ``wait`` off, yields whether it was free."""
    with path.open("a") as file:
        path.chmod(0o600)
        yield _acquire(file.fileno(), wait=wait)


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
