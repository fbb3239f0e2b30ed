"""Stands between a client and the service, and keeps what the client asked and how it was answered."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.service.serving import Answer, Service

_OF_THE_CONNECTION = frozenset({"connection", "content-length", "date", "server", "transfer-encoding"})


@dataclass(frozen=True)
class Relay:
    """``service`` is the one behind it, by the relay's own address; ``heard`` grows with each request."""

    service: Service
    heard: list[tuple[str, str, Answer]] = field(default_factory=list)

    def paths(self) -> set[str]:
        """Where the client was, by any method."""
        return {path for _, path, _ in self.heard}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        assert isinstance(self.server, _Server)
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        asked = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.behind.ask(self.command, self.path, body, headers=asked)
        self.server.relay.heard.append((self.command, self.path, answer))
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name not in _OF_THE_CONNECTION:
                self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_POST = do_DELETE = do_OPTIONS = handle_any  # noqa: N815 - the names of the base class

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        del format, args


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    behind: Service
    relay: Relay


@contextmanager
def relaying(service: Service) -> Generator[Relay]:
    """A relay to ``service`` until the block ends."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.behind = service
        server.relay = Relay(replace(service, url=f"http://127.0.0.1:{server.server_port}"))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.relay
        finally:
            server.shutdown()
            thread.join()
