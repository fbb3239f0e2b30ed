"""How a commit that comes again is known: by the hashes of the last commits, which stand in the run's row.

With an idempotency key each of the last `KEPT` is known, in whatever order they come again. Without one only the
commit directly before is: a graph may report the same twice on purpose, with something else between.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from runmemory_core.operations.storage import Commit
from runmemory_core.policy.json_rules import write

KEPT = 32
_BYTES = 16


@dataclass(frozen=True, slots=True)
class Marks:
    """The hashes of one commit: over its operations and the addresses of its parts, and with its key."""

    body: bytes
    keyed: bytes | None

    @classmethod
    def of(cls, request: Commit) -> Marks:
        """The marks of ``request``; the texts of its parts are known by their addresses."""
        shown = request.model_dump(mode="python", include={"adapter", "operations", "attempt", "linear"})
        body = _hash(write([shown, sorted(request.parts)]).encode())
        key = request.idempotency_key
        return cls(body, None if key is None else _hash(body + key.encode("utf-8", "surrogatepass")))

    def known(self, run: Any) -> bool:
        """Whether ``run`` holds this commit already."""
        recent: bytes = run["last_commits"] or b""
        in_recent = self.keyed is not None and any(
            recent[start : start + _BYTES] == self.keyed for start in range(0, len(recent), _BYTES)
        )
        return in_recent or run["last_body"] == self.body

    def after(self, run: Any) -> dict[str, bytes]:
        """What stands in the run's row once this commit is recorded."""
        recent: bytes = (run["last_commits"] or b"") + (self.keyed or b"")
        return {"last_body": self.body, "last_commits": recent[-KEPT * _BYTES :]}


def _hash(body: bytes) -> bytes:
    return blake2b(body, digest_size=_BYTES).digest()
