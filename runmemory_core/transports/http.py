"""The service over HTTP. The only module that knows httpx."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator

import httpx

from runmemory_core.errors import Unauthorized
from runmemory_core.model import Reply
from runmemory_core.operations.calls import Call
from runmemory_core.transports.retries import Answer, Commands, Failure, Pause, Send, conversation
from runmemory_core.transports.wires import REST, Wire

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
    return str(httpx.URL(url).copy_with(userinfo=b""))


def _jitter() -> Iterator[float]:
    while True:
        yield random.uniform(0.5, 1.5)  # noqa: S311 - spreads retries, protects nothing


def _answer(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.headers, response.content)


def _failure(error: httpx.HTTPError) -> Failure:
    return Failure(str(error) or type(error).__name__)


class HttpTransport:
    """Blocking, over one pool of connections."""

    remote = True

    def __init__(self, url: str, *, api_key: str | None, timeout_seconds: float, wire: Wire = REST) -> None:
        self.where = _without_userinfo(url)
        self._wire = wire
        self._http = httpx.Client(**_settings(url, api_key, timeout_seconds))  # pyright: ignore[reportArgumentType]

    def send(self, call: Call, /) -> Reply:
        path, headers, body = self._wire.request(call)
        commands: Commands = conversation(self.where, jitter=_jitter(), read=self._wire.read)
        report: Answer | Failure | None = None
        while True:
            try:
                command = commands.send(report)
            except StopIteration as done:
                return done.value
            match command:
                case Send():
                    try:
                        report = _answer(self._http.post(path, headers=headers, content=body))
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

    def __init__(self, url: str, *, api_key: str | None, timeout_seconds: float, wire: Wire = REST) -> None:
        self.where = _without_userinfo(url)
        self._wire = wire
        self._http = httpx.AsyncClient(
            **_settings(url, api_key, timeout_seconds)  # pyright: ignore[reportArgumentType]
        )

    async def send(self, call: Call, /) -> Reply:
        path, headers, body = self._wire.request(call)
        commands: Commands = conversation(self.where, jitter=_jitter(), read=self._wire.read)
        report: Answer | Failure | None = None
        while True:
            try:
                command = commands.send(report)
            except StopIteration as done:
                return done.value
            match command:
                case Send():
                    try:
                        report = _answer(await self._http.post(path, headers=headers, content=body))
                    except httpx.HTTPError as error:
                        report = _failure(error)
                case Pause(seconds=seconds):
                    await asyncio.sleep(seconds)
                    report = None

    async def close(self) -> None:
        await self._http.aclose()
