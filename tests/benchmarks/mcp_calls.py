"""CPU of the service for one save of 2 KB: over /mcp, in both kinds of revision, against the REST route."""

from __future__ import annotations

import http.client
import json
import os
from contextlib import closing
from itertools import count
from pathlib import Path

from tests.benchmarks.embedded import STATE
from tests.benchmarks.measuring import microseconds, ratio, scratch, show
from tests.service.messages import HANDSHAKE, MODERN, headers_for, message
from tests.service.serving import Service, running_service

ROUNDS = 5
CALLS = 400
REST = "REST"
SIDES = {REST: "", f"MCP {HANDSHAKE[-1]}": HANDSHAKE[-1], f"MCP {MODERN}": MODERN}

_steps = count(1)


def cpu_seconds(process_id: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def save(connection: http.client.HTTPConnection, service: Service, revision: str) -> None:
    arguments = {"run_id": "bench", "step": f"step {next(_steps)}", "state": STATE}
    headers = {"authorization": f"Bearer {service.key}", "content-type": "application/json"}
    path, sent = "/api/run/save_checkpoint", arguments
    if revision:
        sent = message("tools/call", {"name": "save_checkpoint", "arguments": arguments}, revision=revision)
        path, headers = "/mcp", headers | headers_for(sent, revision=revision)
    connection.request("POST", path, json.dumps(sent), headers)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    assert b'"seq":' in body, body


def main() -> None:
    taken: dict[str, list[float]] = {name: [] for name in SIDES}
    with (
        scratch() as folder,
        running_service(f"sqlite:///{folder}/mcp.db") as service,
        closing(http.client.HTTPConnection(*service.address)) as connection,
    ):
        for revision in SIDES.values():
            save(connection, service, revision)
        for _ in range(ROUNDS):
            for name, revision in SIDES.items():
                before = cpu_seconds(service.process.pid)
                for _ in range(CALLS):
                    save(connection, service, revision)
                taken[name].append((cpu_seconds(service.process.pid) - before) / CALLS)
    rows = [[name, microseconds(seconds), ratio(seconds, taken[REST])] for name, seconds in taken.items()]
    show(
        "one save of 2 KB, one client: CPU of the service",
        ["", "CPU µs a call", "against REST"],
        rows,
        note="over MCP a reply is written twice, as text and as structure, and read once more by the SDK",
    )


if __name__ == "__main__":
    main()
