"""A real `runmemory serve` in a process of its own, and plain HTTP to talk to it, for any test."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runmemory_core.engine.keys import issue_key
from runmemory_core.model import DEFAULT_ACCOUNT, Plan
from runmemory_core.service.keys import digest, id_of, new_key
from runmemory_core.store import open_store

PATIENCE_SECONDS = 30
"""How long a test waits for what should come at once, before it calls it missing."""

CLI = [sys.executable, "-m", "runmemory_core.cli"]

_WITH_SETTINGS = """
import json, sys
from runmemory_core.service.server import serve
from runmemory_core.service.settings import Settings
settings = Settings(database=sys.argv[1], port=0, **json.loads(sys.argv[2]))
serve(settings, announce=lambda said: print(said, flush=True))
"""


@dataclass(frozen=True)
class Answer:
    """What came back; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The stable code of a refusal, which has to be a problem."""
        assert self.headers["content-type"] == "application/problem+json"
        assert self.json["status"] == self.status
        return self.json["code"]


def address_of(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return str(parts.hostname), int(parts.port or 0)


def ask(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request on a connection of its own; a body that is no bytes is sent as JSON."""
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    named = {} if key is None else {"authorization": f"Bearer {key}"}
    with closing(http.client.HTTPConnection(*address_of(url), timeout=PATIENCE_SECONDS)) as connection:
        connection.request(method, path, sent, {**named, **(headers or {})})
        return answer_of(connection.getresponse())


@dataclass(frozen=True)
class Service:
    """A running service; ``key`` is one of plan own."""

    url: str
    key: str
    database: str
    process: subprocess.Popen[str]
    log: Path
    said: str = field(default="")

    @property
    def address(self) -> tuple[str, int]:
        return address_of(self.url)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own; a body that is no bytes is sent as JSON."""
        return ask(self.url, method, path, body, key=key, headers=headers)

    def tool(self, name: str, body: Any = None, **more: Any) -> Answer:
        """One of the five tools, with the service's key."""
        return self.ask("POST", f"/api/run/{name}", body, key=self.key, **more)

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE_SECONDS)


def answer_of(response: http.client.HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def new_key_in(database: str, *, account: str = DEFAULT_ACCOUNT, plan: Plan = Plan.OWN) -> str:
    """A new key, recorded in the database as `runmemory keys issue` does it."""
    key = new_key()
    made = {"key_id": id_of(key), "account": account, "plan": plan, "label": "test", "now_ms": 0}
    store = open_store(database)
    try:
        store.transact(partial(issue_key, key_sha256=digest(key), **made))
    finally:
        store.close()
    return key


def environment() -> dict[str, str]:
    """This process's, without settings of Run Memory."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RUNMEMORY_")}


@contextmanager
def running_service(
    database: str, *, port: int = 0, **settings: float | str | list[str]
) -> Generator[Service]:
    """`runmemory serve` on ``database`` until the block ends; a free port unless one is named.

    ``settings`` other than the defaults leave no choice of the port.
    """
    key = new_key_in(database)
    command = [*CLI, "serve", "--port", str(port), "--database", database]
    if settings:
        command = [sys.executable, "-c", _WITH_SETTINGS, database, json.dumps(settings)]
    with (
        tempfile.NamedTemporaryFile("w", suffix=".log") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, env=environment(), text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            found = re.search(r"http://[\d.]+:\d+", said)
            assert found, f"the service did not start:\n{Path(log.name).read_text()}"
            yield Service(found[0], key, database, process, Path(log.name), said)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            process.wait(PATIENCE_SECONDS)


def until(found: Any) -> Any:
    """The first true result of calling ``found`` again and again; fails after a long while."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if result := found():
            return result
    raise AssertionError(f"still not so after {PATIENCE_SECONDS} s")
