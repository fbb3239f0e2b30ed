"""Secrets that are saved under any name through any face are nowhere afterwards: files, logs, errors."""

from __future__ import annotations

import json
import logging
import sqlite3
from contextlib import closing, suppress
from itertools import count
from typing import Any

import pytest

from runmemory_core import RunMemoryError
from runmemory_core.model import Plan
from runmemory_core.store.codec import unpack
from tests.contract.faces import Face

NAMES = (
    *("password", "DB_PASSWORD", "clientSecret", "api_key", "apiKey", "Authorization", "access_token"),
    *("private_key", "connection_string", "set-cookie", "passphrase", "x-api-key", "refreshToken", "jwt"),
    *("otp", "webhook_url", "credentials", "aws_secret_access_key", "smtp pass", "csrfmiddlewaretoken"),
)
MARK = "canary7Q"
"""What each secret holds; nothing else in these tests does."""


def secrets() -> Any:
    numbers = count()
    return lambda: f"{MARK}x{next(numbers)}Zz91LmP0qRsTuV"


def states() -> list[dict[str, Any]]:
    """Secrets by name, in every shape that redaction knows, and by format."""
    new = secrets()
    named = {name: new() for name in NAMES}
    return [
        named,
        {"deep": [{"list": [named]}] * 3, "text": json.dumps({"again": json.dumps(named)})},
        {"headers": [[name, new()] for name in ("Authorization", "Cookie", "X-Api-Key")]},
        {"env": [{"name": name, "value": new()} for name in NAMES]},
        {"url": f"https://user:{new()}@host/x", "dotenv": f"API_KEY={new()}\nDEBUG=1"},
        {"form": f"user=ann&password={new()}", "said": f"Authorization: Bearer {new()}"},
        {"log": f"sk-proj-{new()}{'a' * 20} and ghp_{MARK}{'b' * 28}", f"ghp_{MARK}{'c' * 28}": 1},
        {"large": [f"text {number} " * 40 for number in range(60)], "password": [new() * 50]},
    ]


def everywhere(face: Face, said: list[str]) -> bytes:
    files = b"".join(file.read_bytes() for file in sorted(face.path.parent.rglob("*")) if file.is_file())
    with closing(sqlite3.connect(face.path)) as connection:
        # Bodies are compressed, which would hide anything.
        tables = ("checkpoints", "parts", "writes")
        bodies = [
            unpack(body) for table in tables for (body,) in connection.execute(f"SELECT body FROM {table}")
        ]
    return files + "\n".join([*said, *face.dump(), *bodies]).encode()


@pytest.mark.rule("RED-04")
@pytest.mark.parametrize("plan", [Plan.OWN, Plan.PRO, Plan.WATCH])
def test_secrets_saved_through_any_face_are_nowhere(
    face: Face, plan: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = face.client(plan=plan)
    said: list[str] = []
    for number, state in enumerate(states()):
        reply = client.save_checkpoint("import", f"{number}", state=state, idempotency_key=f"{number}")
        assert reply.removed or reply.would_save
        said.append(repr(reply))
    credential = f"ghp_{MARK}{'d' * 28}"
    refused: list[dict[str, Any]] = [
        {"run_id": credential, "step": "x"},
        {"run_id": "import", "step": credential},
        {"run_id": "import", "step": "x", "next_step": credential},
        {"run_id": "import", "step": "x", "job": credential},
        {"run_id": "import", "step": "x", "done": ["a", credential]},
        {"run_id": "import", "step": "x", "idempotency_key": credential},
        {"run_id": "import", "step": "x", "state": {"password": MARK, "wrong": float("nan")}},
        {"run_id": "import", "step": "x", "state": {"text": MARK * 40_000}},
        {"run_id": "import", "step": "x", "expected_seq": 99, "state": {"password": MARK}},
        {"run_id": "import", "step": "x", "attempt": 99, "state": {"password": MARK}},
    ]
    for arguments in refused:
        try:
            reply = client.save_checkpoint(**arguments)
        except RunMemoryError as refusal:
            said.append(json.dumps(refusal.to_problem()))
        else:
            assert plan is Plan.WATCH, arguments
            said.append(repr(reply))
    client.save_checkpoint("import", "failed", status="failed", error=f"refused: Bearer {MARK}Zz91LmP0qRsTuV")
    if plan is not Plan.WATCH:
        node = {"=": {"password": f"{MARK}Zz91LmP0qRsTuV"}}
        change = {
            "op": "put",
            "key": "a",
            "state": [["api_key", {"=": f"{MARK}Zz91LmP0qRsTuV"}], ["x", node]],
        }
        client.store.commit("graph", "langgraph", operations=[change], parts={})
    with suppress(RunMemoryError):
        said.append(repr(client.resume("import")))
    said += [repr(client.weekly_report()), repr(client.list_checkpoints()), caplog.text]
    found = everywhere(face, said).split(MARK.encode())
    assert [before[-80:] for before in found[:-1]] == []
    # The control: what is no secret is found where it was saved.
    client.save_checkpoint("import", f"plain {MARK}")
    assert MARK.encode() in everywhere(face, [])
