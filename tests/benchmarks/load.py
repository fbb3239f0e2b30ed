"""Sixteen keep-alive clients that save 2 KB each as fast as they are answered; prints requests a second.

Run as a process of its own, so that it can be put on another core than the server:
``python -m tests.benchmarks.load URL KEY REQUESTS [PATH]``
"""

import asyncio
import json
import sys
import time
from typing import cast
from urllib.parse import urlsplit

import uvloop

from tests.benchmarks.embedded import STATE

CLIENTS = 16


def request_of(host: str, key: str, client: int, number: int, path: str) -> bytes:
    state = STATE | {"cursor": number}
    body = json.dumps(
        {"run_id": f"run-{client}", "step": f"step {number}", "state": state}, separators=(",", ":")
    )
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n"
        f"idempotency-key: {client}-{number}-{time.time_ns()}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return (head + body).encode()


class Client(asyncio.Protocol):
    """Sends its prepared requests one after the other."""

    def __init__(self, requests: list[bytes], done: asyncio.Future[None]) -> None:
        self.requests = requests[::-1]
        self.done = done
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self.requests.pop())

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(body) < length:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(RuntimeError(self.received.decode()[:500]))
            return
        self.received = b""
        if self.requests:
            self.transport.write(self.requests.pop())
        else:
            self.done.set_result(None)


async def main(url: str, key: str, count: int, path: str) -> None:
    place = urlsplit(url)
    loop = asyncio.get_running_loop()
    each = count // CLIENTS
    prepared = [[request_of(place.netloc, key, c, n, path) for n in range(each)] for c in range(CLIENTS)]
    futures = [loop.create_future() for _ in prepared]
    begun = time.perf_counter()
    for requests, done in zip(prepared, futures, strict=True):
        await loop.create_connection(
            lambda r=requests, d=done: Client(r, d), str(place.hostname), place.port or 80
        )
    await asyncio.gather(*futures)
    print(each * CLIENTS / (time.perf_counter() - begun))


if __name__ == "__main__":
    url, key, count, *rest = sys.argv[1:]
    uvloop.run(main(url, key, int(count), rest[0] if rest else "/api/run/save_checkpoint"))
