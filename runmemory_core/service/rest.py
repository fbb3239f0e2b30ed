"""The operations by POST, and a large state by GET, as raw ASGI: between a request and the engine lies only
what is checked here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from runmemory_core.engine import perform, reads_only
from runmemory_core.engine.reading import read_state
from runmemory_core.errors import AccountRequired, InvalidRequest
from runmemory_core.model import Caller
from runmemory_core.operations import Operation
from runmemory_core.operations.calls import Call, prepare
from runmemory_core.operations.tools import Resume
from runmemory_core.operations.wire import write
from runmemory_core.service.answers import JSON, TEXT, Headers, answer, rate_limit
from runmemory_core.service.auth import Authenticator
from runmemory_core.service.bodies import gunzip, read_body, read_json
from runmemory_core.service.heads import declared_bytes, headers_of, is_gzip
from runmemory_core.service.settings import Settings
from runmemory_core.store import Store, Tx
from runmemory_core.store.clock import wall_clock_ms
from runmemory_core.store.group import GroupWriter

LARGE_BYTES = 262_144
"""From this size on a body is read on another thread, so that it holds up nobody else."""

_DIGITS = 18


class Engine:
    """The engine behind the routes: writes of many callers share transactions, reads run on a few threads."""

    def __init__(
        self, store: Store, settings: Settings, *, clock_ms: Callable[[], int] = wall_clock_ms
    ) -> None:
        self.store = store
        self.settings = settings
        self.clock_ms = clock_ms
        self.threads = ThreadPoolExecutor(settings.reading_threads, thread_name_prefix="runmemory-reader")
        self.authenticator = Authenticator(store, self.threads, settings, clock_ms=clock_ms)
        self._writer = GroupWriter(store)

    async def run(self, call: Call, caller: Caller, *, size_bytes: int) -> tuple[bytes, Headers]:
        """The JSON of the reply and what headers say of it, once what it says is committed."""
        loop = asyncio.get_running_loop()
        now_ms = self.clock_ms()
        work = partial(perform, call=call, caller=caller, now_ms=now_ms)
        if reads_only(call, caller):
            return await loop.run_in_executor(self.threads, self._read, work, now_ms)
        return _encoded(await self.write(work, size_bytes=size_bytes), now_ms)

    async def write(self, work: Callable[[Tx], Any], *, size_bytes: int = 0) -> Any:
        """What ``work`` returns, once it is committed together with what else waits."""
        return await self._writer.submit_from(asyncio.get_running_loop(), work, size_bytes=size_bytes)

    def _read(self, work: Callable[[Tx], Any], now_ms: int) -> tuple[bytes, Headers]:
        return _encoded(self.store.read(work), now_ms)

    async def check(self) -> None:
        """Return when the store answers; raises what it says otherwise."""
        await asyncio.get_running_loop().run_in_executor(self.threads, self.store.read, _format)

    def close(self) -> None:
        """Commit what was accepted and stop the threads; the store stays open."""
        self._writer.close()
        self.threads.shutdown()


def _format(tx: Tx) -> Any:
    return tx.one("format")


def _encoded(reply: Any, now_ms: int) -> tuple[bytes, Headers]:
    usage: dict[str, Any] = reply.get("usage", {})
    quota = rate_limit(usage["limit"], usage["remaining"], now_ms=now_ms) if "limit" in usage else ()
    return write(reply).encode(), [JSON, *quota]


class OperationEndpoint:
    """Answers one operation of the table at its path."""

    def __init__(self, operation: Operation, engine: Engine) -> None:
        self._operation = operation
        self._engine = engine
        self._takes_key = "idempotency_key" in operation.request.model_fields

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_of(scope)
        caller = await self._engine.authenticator.caller(scope, headers)
        if caller.anonymous and self._operation.group == "store":
            raise AccountRequired(
                f"{self._operation.path} needs an API key; without one Run Memory only previews the five "
                "tools: send Authorization: Bearer <key>"
            )
        packed = is_gzip(headers, accepted=self._operation.group == "store")
        limit, path = self._limit(caller), self._operation.path
        body = await read_body(receive, limit=limit, declared=declared_bytes(headers), path=path)
        if packed:
            loop = asyncio.get_running_loop()
            body = await loop.run_in_executor(
                self._engine.threads, partial(gunzip, body, limit=limit, path=path)
            )
        if len(body) < LARGE_BYTES:
            call = self._call(body, headers)
        else:
            loop = asyncio.get_running_loop()
            call = await loop.run_in_executor(self._engine.threads, self._call, body, headers)
        reply, described = await self._engine.run(call, caller, size_bytes=len(body))
        await answer(send, reply, headers=described)

    def _limit(self, caller: Caller) -> int:
        settings = self._engine.settings
        large = self._operation.group == "store" and caller.mode == "acting"
        return settings.store_body_bytes if large else settings.run_body_bytes

    def _call(self, body: bytes | bytearray, headers: dict[bytes, bytes]) -> Call:
        # The five tools look at every number themselves: names are no numbers, and states are walked.
        arguments = read_json(body, deep=self._operation.group == "store")
        if self._takes_key and (key := headers.get(b"idempotency-key")) is not None:
            _add_key(arguments, key.decode("latin-1"))
        return prepare(self._operation.name, arguments, parsed=True)


def _add_key(arguments: dict[str, Any], key: str) -> None:
    given = arguments.get("idempotency_key")
    if given is None:
        arguments["idempotency_key"] = key
    elif str(given) != key:
        raise InvalidRequest(
            "idempotency_key and the Idempotency-Key header differ: send one of them, or the same in both",
            pointers={"/idempotency_key": "differs from the Idempotency-Key header"},
        )


class StateEndpoint:
    """A state of any size: whole as JSON, or from ``offset`` on ``length`` characters of it as text."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        engine = self._engine
        request = Request(scope, receive)
        caller = await engine.authenticator.caller(scope, headers_of(scope))
        seq, offset, length = (_number(request, name) for name in ("seq", "offset", "length"))
        asked = prepare("resume", {"run_id": request.path_params["run_id"], "seq": seq, "peek": True}).request
        assert isinstance(asked, Resume)
        work = partial(read_state, request=asked, caller=caller, now_ms=engine.clock_ms())
        loop = asyncio.get_running_loop()
        found, text = await loop.run_in_executor(engine.threads, engine.store.read, work)
        start = offset or 0
        piece = text[start : None if length is None else start + length]
        headers = [JSON if offset is None and length is None else TEXT, (b"cache-control", b"no-store")]
        headers += [
            (b"run-memory-seq", str(found).encode()),
            (b"run-memory-characters", str(len(text)).encode()),
        ]
        await answer(send, piece.encode(), headers=headers)


def _number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
        raise InvalidRequest(
            f"{name} is a number of up to {_DIGITS} digits", pointers={f"/{name}": "not a number"}
        )
    return int(text)
