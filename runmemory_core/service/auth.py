"""Who is asking: from the Authorization header to a `Caller`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

from runmemory_core.engine.keys import ANONYMOUS, caller_of_key
from runmemory_core.errors import Unauthorized
from runmemory_core.model import Caller
from runmemory_core.service.keys import PREFIX, digest, is_well_formed
from runmemory_core.service.settings import Settings
from runmemory_core.store import Store

_WAY_OUT = "issue one with runmemory keys issue, or send no key at all to preview without storing"


class Authenticator:
    """Recognises keys; those found are remembered for a few seconds, so that a revoked one soon fails."""

    def __init__(
        self,
        store: Store,
        executor: Executor,
        settings: Settings,
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._executor = executor
        self._kept_seconds = settings.key_cache_seconds
        self._size = settings.key_cache_size
        self._seconds = seconds
        self._known: dict[bytes, tuple[Caller, float]] = {}

    async def caller(self, authorization: bytes | None) -> Caller:
        """Whom the header stands for, `ANONYMOUS` without one; raises `Unauthorized` for a wrong one."""
        if authorization is None:
            return ANONYMOUS
        known = self._known.get(authorization)
        if known is not None and self._seconds() < known[1]:
            return known[0]
        look_up = partial(caller_of_key, key_sha256=digest(_key_in(authorization)))
        loop = asyncio.get_running_loop()
        caller = await loop.run_in_executor(self._executor, self._store.read, look_up)
        if caller is None:
            self._known.pop(authorization, None)
            raise Unauthorized(f"this API key is unknown or revoked: {_WAY_OUT}")
        if len(self._known) >= self._size:
            self._known.clear()
        self._known[authorization] = (caller, self._seconds() + self._kept_seconds)
        return caller


def _key_in(authorization: bytes) -> str:
    """The key of a header ``Bearer <key>`` or, as some clients send it, ``<key>``; raises `Unauthorized`."""
    words = authorization.decode("latin-1").split()
    if len(words) > 1 and words[0].lower() == "bearer":
        del words[0]
    if len(words) != 1 or not words[0].startswith(PREFIX):
        raise Unauthorized(f"the Authorization header holds no API key of Run Memory: {_WAY_OUT}")
    if not is_well_formed(words[0]):
        raise Unauthorized("this API key is mistyped: its checksum does not fit. Copy it again, whole")
    return words[0]
