"""The service over HTTP. The only module that knows httpx."""

from __future__ import annotations

import asyncio
import gzip
import random
import time
from collections.abc import Iterator

import httpx

from runmemory_core.errors import Unauthorized
from runmemory_core.model import KIB, Reply
from runmemory_core.operations.calls import Call
from runmemory_core.operations.wire import write_call
from runmemory_core.transports.retries import Answer, Commands, Failure, Pause, Send, conversation

CONNECT_SECONDS = 5.0
COMPRESSED_FROM_BYTES = 16 * KIB
_FASTEST = 1


def _settings(url: str, api_key: str | None, timeout_seconds: float) -> dict[str, object]:
    headers = {"content-type": "application/json", "accept": "application/json"}
    if api_key is not None:
        if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
            raise Unauthorized("the API key holds characters that no key has: copy it again")
        headers["authorization"] = f"Bearer {api_key}"
    timeout = httpx.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds))
    return {"base_url": url, "headers": headers, "timeout": timeout}


def _without_userinfo(url: str) -> str:
    return str(httpx.URL(url).copy_with(userinfo=b""))


def _jitter() -> Iterator[float]:
    while True:
        yield random.uniform(0.5, 1.5)  # noqa: S311 - spreads retries, protects nothing


def _packed(call: Call) -> tuple[bytes, dict[str, str]]:
    """The body of the request, compressed where an adapter sends much of it, and the headers that say so."""
    body = write_call(call)
    if call.operation.group != "store" or len(body) < COMPRESSED_FROM_BYTES:
        return body, {}
    return gzip.compress(body, _FASTEST, mtime=0), {"content-encoding": "gzip"}


def _answer(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.headers, response.content)


def _failure(error: httpx.HTTPError) -> Failure:
    return Failure(str(error) or type(error).__name__)


class HttpTransport:
    """Blocking, over one pool of connections."""

    remote = True

    def __init__(self, url: str, *, api_key: str | None, timeout_seconds: float) -> None:
        self.where = _without_userinfo(url)
        self._http = httpx.Client(**_settings(url, api_key, timeout_seconds))  # pyright: ignore[reportArgumentType]

    def send(self, call: Call, /) -> Reply:
        body, headers = _packed(call)
        commands: Commands = conversation(self.where, jitter=_jitter())
        report: Answer | Failure | None = None
        while True:
            try:
                command = commands.send(report)
            except StopIteration as done:
                return done.value
            match command:
                case Send():
                    try:
                        report = _answer(self._http.post(call.operation.path, content=body, headers=headers))
                    except httpx.HTTPError as error:
                        report = _failure(error)
                case Pause(seconds=seconds):
                    time.sleep(seconds)
                    report = None

    def close(self) -> None:
        self._http.close()


class AsyncHttpTransport:
    """For an event loop."""

    remote = True

    def __init__(self, url: str, *, api_key: str | None, timeout_seconds: float) -> None:
        self.where = _without_userinfo(url)
        self._http = httpx.AsyncClient(
            **_settings(url, api_key, timeout_seconds)  # pyright: ignore[reportArgumentType]
        )

    async def send(self, call: Call, /) -> Reply:
        body, headers = _packed(call)
        commands: Commands = conversation(self.where, jitter=_jitter())
        report: Answer | Failure | None = None
        while True:
            try:
                command = commands.send(report)
            except StopIteration as done:
                return done.value
            match command:
                case Send():
                    try:
                        report = _answer(
                            await self._http.post(call.operation.path, content=body, headers=headers)
                        )
                    except httpx.HTTPError as error:
                        report = _failure(error)
                case Pause(seconds=seconds):
                    await asyncio.sleep(seconds)
                    report = None

    async def close(self) -> None:
        await self._http.aclose()
