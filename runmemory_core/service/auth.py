"""Who is asking: from the headers and the address of a request to a `Caller`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial

from starlette.types import Scope

from runmemory_core.engine.keys import ADDRESS_KEY_MS, address_keys, caller_at_address, caller_of_key
from runmemory_core.errors import Unauthorized
from runmemory_core.model import Caller
from runmemory_core.service.addresses import address_of
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
        clock_ms: Callable[[], int],
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._executor = executor
        self._kept_seconds = settings.key_cache_seconds
        self._size = settings.key_cache_size
        self._trusted = settings.trusted_proxies
        self._clock_ms = clock_ms
        self._seconds = seconds
        self._address_keys: tuple[int, tuple[bytes, ...]] = (-1, ())
        self._known: dict[bytes, tuple[Caller, float]] = {}

    async def caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        """Whom the key stands for, or the address when there is none; raises `Unauthorized` for a wrong key.

        An empty header announces nothing, and is as good as none. ``Bearer`` alone announces a key that is missing:
        whoever meant to save hears of it.
        """
        authorization = headers.get(b"authorization", b"").strip()
        if not authorization:
            return await self.anonymous(scope, headers)
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

    async def anonymous(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        """The caller without a key, whatever keys the request has."""
        now_ms = self._clock_ms()
        period, keys = self._address_keys
        if period != now_ms // ADDRESS_KEY_MS:
            make = partial(address_keys, now_ms=now_ms)
            loop = asyncio.get_running_loop()
            keys = await loop.run_in_executor(self._executor, self._store.transact, make)
            self._address_keys = now_ms // ADDRESS_KEY_MS, keys
        return caller_at_address(address_of(scope, headers, self._trusted), keys)


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
