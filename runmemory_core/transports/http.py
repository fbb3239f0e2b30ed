"""The service over HTTP. The only module that knows httpx."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import httpx

from runmemory_core.errors import InvalidRequest, RunMemoryError, Unauthorized
from runmemory_core.model import Reply
from runmemory_core.operations.calls import Call
from runmemory_core.transports.retries import (
    PAUSES_SECONDS,
    Answer,
    Commands,
    Failure,
    Pause,
    Send,
    conversation,
)
from runmemory_core.transports.wires import REST, Wire

Opened = TypeVar("Opened", httpx.Client, httpx.AsyncClient)

CONNECT_SECONDS = 5.0


def _settings(url: str, api_key: str | None, timeout_seconds: float) -> dict[str, object]:
    headers = {"content-type": "application/json", "accept": "application/json"}
    if api_key is not None:
        if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
            raise Unauthorized("the API key holds characters that no key has: copy it again")
        headers["authorization"] = f"Bearer {api_key}"
    timeout = httpx.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds))
    return {"base_url": url, "headers": headers, "timeout": timeout}


def _without_userinfo(url: str) -> str:
    try:
        return str(httpx.URL(url).copy_with(userinfo=b""))
    except (httpx.InvalidURL, ValueError):
        raise InvalidRequest(
            "url is no address of a service: use one such as https://host or http://127.0.0.1:8787",
            pointers={"/url": "not an address"},
        ) from None


def _opener(
    kind: Callable[..., Opened], url: str, api_key: str | None, timeout_seconds: float
) -> Callable[[], Opened]:
    """What opens a pool of connections: httpx also reads proxies and certificates from the environment."""
    settings = _settings(url, api_key, timeout_seconds)

    def open_one() -> Opened:
        try:
            return kind(**settings)
        except (httpx.InvalidURL, ValueError, OSError) as error:
            raise RunMemoryError(
                f"cannot prepare connections: {type(error).__name__}: {error}; check the proxies and certificates "
                "that the environment names"
            ) from error

    return open_one


def _jitter() -> Iterator[float]:
    while True:
        yield random.uniform(0.5, 1.5)  # noqa: S311 - spreads retries, protects nothing


def _answer(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.headers, response.content)


def _failure(error: Exception, where: str) -> Failure:
    """What is worth another try; anything else is raised in words."""
    if isinstance(error, httpx.HTTPError):
        return Failure(str(error) or type(error).__name__)
    raise RunMemoryError(
        f"the call to {where} broke off: {type(error).__name__}: {error}; whether it was taken is unknown"
    ) from error


def _own(reply: Reply, call: Call, where: str) -> Reply:
    """The reply, unless it tells of another run: then connections were mixed up on the way."""
    asked = getattr(call.request, "run_id", None)
    if asked is not None and reply.get("run_id", asked) != asked:
        raise RunMemoryError(
            f"{where} answered a call for another run than {asked}: something between here and there mixes up "
            "connections, and whether the call was taken is unknown"
        )
    return reply


class HttpTransport:
    """Blocking, over one pool of connections in each process: a forked child must not read its parent's answers."""

    remote = True

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None,
        timeout_seconds: float,
        wire: Wire = REST,
        retries: bool = True,
    ) -> None:
        self.where = _without_userinfo(url)
        self._wire = wire
        self._pauses = PAUSES_SECONDS if retries else ()
        self._open = _opener(httpx.Client, url, api_key, timeout_seconds)
        self._pools = {os.getpid(): self._open()}

    def _pool(self) -> httpx.Client:
        # A lock here could be held by a thread that a fork leaves behind. The parent's pool stays referenced, so
        # that nothing in the child ever closes it.
        return self._pools.get(os.getpid()) or self._pools.setdefault(os.getpid(), self._open())

    def send(self, call: Call, /) -> Reply:
        path, headers, body = self._wire.request(call)
        commands: Commands = conversation(
            self.where, jitter=_jitter(), read=self._wire.read, pauses=self._pauses
        )
        report: Answer | Failure | None = None
        while True:
            try:
                command = commands.send(report)
            except StopIteration as done:
                return _own(done.value, call, self.where)
            match command:
                case Send():
                    pool = self._pool()
                    try:
                        report = _answer(pool.post(path, headers=headers, content=body))
                    except Exception as error:  # noqa: BLE001 - _failure raises what it does not know
                        report = _failure(error, self.where)
                case Pause(seconds=seconds):
                    time.sleep(seconds)
                    report = None

    def close(self) -> None:
        if (pool := self._pools.get(os.getpid())) is not None:
            pool.close()


class AsyncHttpTransport:
    """For event loops, one after another or side by side: connections belong to the loop that made them."""

    remote = True

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None,
        timeout_seconds: float,
        wire: Wire = REST,
        retries: bool = True,
    ) -> None:
        self.where = _without_userinfo(url)
        self._wire = wire
        self._pauses = PAUSES_SECONDS if retries else ()
        self._open = _opener(httpx.AsyncClient, url, api_key, timeout_seconds)
        self._open()  # nothing connects before a loop runs, but what cannot work is told now
        self._pools: dict[tuple[int, asyncio.AbstractEventLoop], httpx.AsyncClient] = {}

    def _pool(self) -> httpx.AsyncClient:
        here = (os.getpid(), asyncio.get_running_loop())
        if here not in self._pools:
            # A pool refers to its loop, so weak references would keep both: loops that ended are let go of here.
            self._pools = {owner: pool for owner, pool in self._pools.items() if not owner[1].is_closed()}
            self._pools[here] = self._open()
        return self._pools[here]

    async def send(self, call: Call, /) -> Reply:
        path, headers, body = self._wire.request(call)
        commands: Commands = conversation(
            self.where, jitter=_jitter(), read=self._wire.read, pauses=self._pauses
        )
        report: Answer | Failure | None = None
        while True:
            try:
                command = commands.send(report)
            except StopIteration as done:
                return _own(done.value, call, self.where)
            match command:
                case Send():
                    pool = self._pool()
                    try:
                        report = _answer(await pool.post(path, headers=headers, content=body))
                    except Exception as error:  # noqa: BLE001 - _failure raises what it does not know
                        report = _failure(error, self.where)
                case Pause(seconds=seconds):
                    await asyncio.sleep(seconds)
                    report = None

    async def close(self) -> None:
        """Close the running loop's connections; those of a loop that ended closed with it."""
        if (pool := self._pools.pop((os.getpid(), asyncio.get_running_loop()), None)) is not None:
            await pool.aclose()
