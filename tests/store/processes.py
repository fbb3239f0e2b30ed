"""Python processes that tests start, speak with line by line, and always wait for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

PATIENCE_SECONDS = 120
"""After which a process that should have ended counts as hanging."""


class Process:
    """A Python program; ``prefix`` may put it into namespaces of its own."""

    def __init__(self, program: str, *arguments: object, prefix: Sequence[str] = ()) -> None:
        self._running = subprocess.Popen(
            [*prefix, sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        """The next line the program prints; empty at its end."""
        assert self._running.stdout is not None
        return self._running.stdout.readline().rstrip("\n")

    def tell(self, line: str = "") -> None:
        assert self._running.stdin is not None
        self._running.stdin.write(line + "\n")
        self._running.stdin.flush()

    def kill(self) -> None:
        self._running.kill()

    def end(self, told: str = "") -> str:
        """What is still printed until the program ends, which it must do well, after it was told the rest."""
        printed, complaints = self._running.communicate(told, timeout=PATIENCE_SECONDS)
        assert self._running.returncode == 0, complaints
        return printed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._running.poll() is None:
            self._running.kill()
        self._running.communicate()


def run(program: str, *arguments: object, prefix: Sequence[str] = ()) -> str:
    """What a program prints that ends well."""
    with Process(program, *arguments, prefix=prefix) as process:
        return process.end()
