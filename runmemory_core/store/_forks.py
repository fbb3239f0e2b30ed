"""Hooks around a fork that do not keep their object alive: Python cannot unregister them."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakMethod


def weakly(method: Callable[[], None]) -> Callable[[], None]:
    """``method`` for as long as its object lives; afterwards nothing."""
    reference = WeakMethod(method)

    def call() -> None:
        if (alive := reference()) is not None:
            alive()

    return call
