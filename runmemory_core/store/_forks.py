"""Hooks around a fork that do not keep their object alive, since Python cannot unregister them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from weakref import WeakMethod

Hook = Callable[[], None]


def around_forks(**hooks: Hook) -> None:
    """Call the methods ``before``, ``after_in_parent`` and ``after_in_child`` while their objects live."""
    if sys.platform != "win32":  # which has no fork
        os.register_at_fork(**{moment: _weakly(method) for moment, method in hooks.items()})


def _weakly(method: Hook) -> Hook:
    reference = WeakMethod(method)

    def call() -> None:
        if (alive := reference()) is not None:
            alive()

    return call
