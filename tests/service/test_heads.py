"""What the head of a request may say, over REST and over MCP alike."""

from __future__ import annotations

import json

import pytest

from tests.service.serving import Service

BODIES = {
    "/mcp": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "usage_and_upgrade", "arguments": {}},
    },
    "/api/run/usage_and_upgrade": {},
    "/api/keys/free": {},
}


def status_with(service: Service, path: str, *lines: str) -> int:
    """The status of a request that has these lines in its head."""
    body = json.dumps(BODIES[path])
    host = [] if any(line.startswith("host:") for line in lines) else [f"host: {service.url[7:]}"]
    head = [f"POST {path} HTTP/1.1", *host, *lines, f"content-length: {len(body)}", "connection: close"]
    with service.connect() as connection:
        connection.sendall("\r\n".join([*head, "", body]).encode())
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    return int(answer.split()[1])


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("name", ["host", "authorization", "origin"])
def test_a_header_that_says_who_calls_whom_counts_once(service: Service, path: str, name: str) -> None:
    value = {"host": service.url[7:], "authorization": f"Bearer {service.key}", "origin": "http://localhost"}[
        name
    ]
    assert status_with(service, path, f"{name}: {value}", f"{name}: {value}") == 400


@pytest.mark.parametrize("path", BODIES)
def test_other_headers_may_be_repeated(service: Service, path: str) -> None:
    assert status_with(service, path, "accept: */*", "accept: */*") < 300


@pytest.mark.parametrize("path", ["/mcp", "/api/run/usage_and_upgrade"])
@pytest.mark.parametrize(("value", "status"), [("", 200), (" ", 200), ("Bearer", 401), ("Bearer ", 401)])
def test_an_empty_key_is_none_and_one_that_was_announced_is_missing(
    service: Service, path: str, value: str, status: int
) -> None:
    assert status_with(service, path, f"authorization: {value}") == status
