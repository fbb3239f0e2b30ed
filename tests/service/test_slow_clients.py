"""Clients that keep the service waiting are disconnected; others do not notice them."""

from __future__ import annotations

import time
from pathlib import Path

from tests.service.serving import running_service

SAVE = "/api/run/save_checkpoint"


def test_half_open_heads_slow_bodies_and_silent_sockets_are_closed(tmp_path: Path) -> None:
    with running_service(f"sqlite:///{tmp_path / 'runs.db'}", patience_seconds=1) as service:
        head = f"POST {SAVE} HTTP/1.1\r\nhost: test\r\nauthorization: {service.key}\r\n"
        beginnings = {
            "a silent socket": b"",
            "half a head": head.encode(),
            "half a body": f'{head}content-length: 100\r\n\r\n{{"run_id":'.encode(),
            "a chunk that does not end": f"{head}transfer-encoding: chunked\r\n\r\n64\r\n{{".encode(),
            "a second request that never comes": b"GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n",
        }
        waiting = {name: service.connect() for name in beginnings}
        for name, connection in waiting.items():
            connection.sendall(beginnings[name])
        served = service.tool("save_checkpoint", {"run_id": "r", "step": "one", "state": {}})
        assert served.json["saved"]
        for name, connection in waiting.items():
            with connection:
                received = b"".join(iter(lambda c=connection: c.recv(65_536), b""))
                assert (b"200 OK" in received) == (name == "a second request that never comes")
        assert service.log.read_text() == ""


def test_a_body_that_keeps_coming_is_given_more_time(tmp_path: Path) -> None:
    """Four times the patience pass; what is waited for here is the thing under test."""
    with running_service(f"sqlite:///{tmp_path / 'runs.db'}", patience_seconds=0.5) as service:
        piece = b" " * 200_000
        body = b'{"run_id": "r"}'
        size = len(body) + 5 * len(piece)
        head = f"POST /api/store/fetch HTTP/1.1\r\nauthorization: {service.key}\r\ncontent-length: {size}"
        with service.connect() as connection:
            connection.sendall(f"{head}\r\n\r\n".encode() + body)
            for _ in range(5):
                time.sleep(0.4)
                connection.sendall(piece)
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
