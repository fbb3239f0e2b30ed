"""`runmemory mcp`: the five tools for a client that starts a command and speaks with it over pipes."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import StdioServerParameters
from mcp.client import Client as McpClient
from mcp.client.stdio import stdio_client

from runmemory_core import Client
from runmemory_core.operations import TOOLS
from tests.service.messages import HANDSHAKE, MODERN, message
from tests.service.serving import CLI, PATIENCE_SECONDS, environment


class Spoken:
    """A process that answers line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def say(self, sent: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(sent) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any] | None = None, *, revision: str) -> Any:
        assert self.process.stdout is not None
        sent = message(method, params, revision=revision)
        self.say(sent)
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == sent["id"]
        return answer["result"]

    def call(self, name: str, arguments: dict[str, Any], *, revision: str) -> Any:
        return self.ask("tools/call", {"name": name, "arguments": arguments}, revision=revision)

    def shake_hands(self, revision: str) -> Any:
        if revision == MODERN:
            return self.ask("server/discover", revision=revision)
        client = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        said = self.ask("initialize", client, revision=revision)
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said


@contextmanager
def spoken_to(database: str) -> Generator[Spoken]:
    command = [*CLI, "mcp", "--database", database]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment(), text=True, stdin=pipe, stdout=pipe) as process:
        yield Spoken(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("revision", [*HANDSHAKE, MODERN])
def test_what_one_process_saved_the_next_resumes(tmp_path: Path, revision: str) -> None:
    database = f"sqlite:///{tmp_path}/runs.db"
    with spoken_to(database) as first:
        assert "FIRST" in first.shake_hands(revision)["instructions"]
        first.call("resume", {"run_id": "import"}, revision=revision)
        step = {"run_id": "import", "step": "one", "attempt": 1, "state": {"text": "x" * 200_000}}
        saved = first.call("save_checkpoint", step, revision=revision)["structuredContent"]
        assert (saved["saved"], saved["mode"]) == (True, "acting")
    with spoken_to(database) as second:
        second.shake_hands(revision)
        found = second.call("resume", {"run_id": "import"}, revision=revision)["structuredContent"]
        assert found["checkpoint"]["state"] == {"text": "x" * 200_000}
        assert (found["attempt"], found["restart"]) == (2, True)
        assert "runmemory show import --json" in found["hints"][0]
    with Client(database) as client:
        assert client.resume("import", peek=True).attempt == 2


def test_a_refusal_over_pipes_has_the_same_words(tmp_path: Path) -> None:
    with spoken_to(f"sqlite:///{tmp_path}/runs.db") as process:
        process.shake_hands(MODERN)
        result = process.call("save_checkpoint", {"run_id": "r"}, revision=MODERN)
        assert result["content"] == [{"type": "text", "text": "step is required by save_checkpoint"}]


def test_the_official_client_starts_it(tmp_path: Path) -> None:
    started = StdioServerParameters(
        command=CLI[0],
        args=[*CLI[1:], "mcp", "--database", f"sqlite:///{tmp_path}/runs.db"],
        env=environment(),
    )

    async def talk() -> list[str]:
        async with McpClient(stdio_client(started)) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert anyio.run(talk) == [operation.name for operation in TOOLS]


def test_with_a_service_configured_it_does_not_save_elsewhere() -> None:
    configured = environment() | {"RUNMEMORY_URL": "http://127.0.0.1:1"}
    process = subprocess.run(
        [*CLI, "mcp"], env=configured, text=True, capture_output=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert process.returncode == 1
    assert "RUNMEMORY_URL is set" in process.stderr
    assert "Traceback" not in process.stderr


SAVE = {"run_id": "r", "step": "s", "state": {"n": 7}}
MISFITS: dict[str, tuple[str, int, str]] = {
    "a batch": ("[%s]", -32600, "a batch is not accepted"),
    "broken JSON": ('{"jsonrpc": SECRET', -32700, "is not JSON"),
    "no method": ('{"jsonrpc": "2.0", "id": 3}', -32600, "method must be a string"),
    "an id that is null": ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, "id must be"),
    "arguments in a string": (
        '{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "resume", "arguments": "{}"}}',
        -32602,
        "arguments must be a JSON object",
    ),
    "half a surrogate pair in a name": (
        '{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": {"x": "\\ud800"}}',
        -32700,
        "/params/x holds half",
    ),
    "300 levels": (
        '{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": {"x": ' + "[" * 300 + "]" * 300 + "}}",
        -32700,
        "nested over 200 deep",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_malformed_line_is_answered_in_words_and_the_next_one_is_read(tmp_path: Path, name: str) -> None:
    line, code, words = MISFITS[name]
    with spoken_to(f"sqlite:///{tmp_path}/runs.db") as process:
        process.shake_hands(MODERN)
        assert process.process.stdin is not None
        assert process.process.stdout is not None
        process.process.stdin.write(line.replace("%s", json.dumps(message("ping", revision=MODERN))) + "\n")
        process.process.stdin.flush()
        answer = json.loads(process.process.stdout.readline())
        assert answer["error"]["code"] == code
        assert words in answer["error"]["message"]
        assert "SECRET" not in str(answer)
        if '"id": 3' in line and code != -32700:
            assert answer["id"] == 3
        saved = process.call("save_checkpoint", SAVE, revision=MODERN)
        assert saved["structuredContent"]["saved"] is True


def test_an_answer_to_no_question_is_passed_over(tmp_path: Path) -> None:
    with spoken_to(f"sqlite:///{tmp_path}/runs.db") as process:
        process.shake_hands(MODERN)
        process.say({"jsonrpc": "2.0", "id": 1, "result": "anything"})
        assert process.call("save_checkpoint", SAVE, revision=MODERN)["structuredContent"]["saved"] is True


@pytest.mark.parametrize("run_id", ["plain", "a; echo pwned", "it's $HOME", "-dashed"])
def test_the_line_in_the_hint_prints_a_long_state(tmp_path: Path, run_id: str) -> None:
    state = {"text": "x" * 20_000}
    with spoken_to(f"sqlite:///{tmp_path}/of this test.db") as process:
        process.shake_hands(MODERN)
        process.call("save_checkpoint", {"run_id": run_id, "step": "s", "state": state}, revision=MODERN)
        found = process.call("resume", {"run_id": run_id, "peek": True}, revision=MODERN)
    (hint,) = found["structuredContent"]["hints"]
    line = re.search(r"runmemory (show .+) prints it$", hint)
    assert line, hint
    command = f"{shlex.join(CLI)} {line[1]}"
    printed = subprocess.run(["sh", "-c", command], capture_output=True, check=True, env=environment())
    assert json.loads(printed.stdout)["run"]["checkpoint"]["state"] == state


def started_with(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`runmemory mcp` with nothing to read, in a home of its own."""
    own = environment() | {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")} | variables
    return subprocess.run(
        [*CLI, "mcp"],
        env=own,
        text=True,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_with_a_key_alone_it_does_not_save_elsewhere_than_other_programs(tmp_path: Path) -> None:
    process = started_with(tmp_path, RUNMEMORY_API_KEY="rmk_live_x")
    assert process.returncode == 1
    assert "RUNMEMORY_API_KEY is set" in process.stderr
    assert not list(tmp_path.rglob("*.db"))


def test_which_file_it_is_is_said_once_and_empty_variables_are_absent(tmp_path: Path) -> None:
    process = started_with(tmp_path, RUNMEMORY_URL="", RUNMEMORY_API_KEY="")
    assert process.returncode == 0, process.stderr
    (file,) = tmp_path.rglob("*.db")
    assert process.stderr.count(f"saving to {file} (this machine only)") == 1
    assert process.stdout == ""


@pytest.mark.parametrize("bad", ['"\\ud800"', "9" * 5_000])
def test_a_state_that_json_cannot_hold_is_refused_in_the_result_over_pipes(tmp_path: Path, bad: str) -> None:
    with spoken_to(f"sqlite:///{tmp_path}/runs.db") as process:
        process.shake_hands(MODERN)
        sent = message("tools/call", {"name": "save_checkpoint", "arguments": SAVE}, revision=MODERN)
        assert process.process.stdin is not None
        assert process.process.stdout is not None
        process.process.stdin.write(json.dumps(sent).replace('"n": 7', f'"n": {bad}') + "\n")
        process.process.stdin.flush()
        answer = json.loads(process.process.stdout.readline())
        assert answer["id"] == sent["id"]
        assert answer["result"]["isError"] is True
        assert answer["result"]["content"][0]["text"].startswith("/state/n ")


def test_an_interrupt_ends_it_while_it_waits_for_a_line(tmp_path: Path) -> None:
    command = [*CLI, "mcp", "--database", f"sqlite:///{tmp_path}/runs.db"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment(), text=True, stdin=pipe, stdout=pipe) as process:
        Spoken(process).shake_hands(MODERN)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGINT
