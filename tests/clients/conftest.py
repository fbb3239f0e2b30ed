"""The installed clients, a service to point them at, a home that is theirs alone, and a model to play with."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.clients import install
from tests.clients.relay import Relay, relaying
from tests.clients.stand_in import StandIn, standing_in
from tests.service.serving import Service, environment, new_key_in, running_service

CLIENT_SECONDS = 90
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Clients:
    """Commands of the installed clients, run in a home and with dummy keys that nobody else uses."""

    folder: Path
    home: Path
    environment: dict[str, str] = field(repr=False)

    def start(
        self, command: Sequence[str | Path], more: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self.home,
            env=self.environment | dict(more or {}),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, command: Sequence[str | Path], more: Mapping[str, str] | None = None) -> str:
        """The output of a command, which has to succeed."""
        with self.start(command, more) as process:
            try:
                out, err = process.communicate(timeout=CLIENT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                raise AssertionError(f"{command} did not end:\n{out}\n{err}") from None
        assert process.returncode == 0, f"{command} ended with {process.returncode}:\n{out}\n{err}"
        return out + err


@pytest.fixture(scope="session")
def installed() -> Path:
    return install.install()


@pytest.fixture
def key(service: Service, request: pytest.FixtureRequest) -> str:
    """A key of an account that no other test has."""
    return new_key_in(service.database, account=request.node.name)


@pytest.fixture
def clients(installed: Path, tmp_path: Path, key: str) -> Clients:
    home = tmp_path / "home"
    (home / "codex").mkdir(parents=True)
    environment = {
        "PATH": install.node_path(installed),
        "HOME": str(home),
        "CODEX_HOME": str(home / "codex"),
        "ANTHROPIC_API_KEY": "sk-ant-dummy",
        "OPENAI_API_KEY": "sk-dummy",
        "RUNMEMORY_API_KEY": key,
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",  # nobody: only a stand-in answers
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    return Clients(installed, home, environment)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(f"sqlite:///{tmp_path_factory.mktemp('service') / 'runs.db'}") as running:
        yield running


@pytest.fixture(scope="session")
def fixtures() -> Iterator[str]:
    """The address of the conformance suite's fixture tools."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tests.clients.conformance_app", str(port)]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


@pytest.fixture
def relay(service: Service) -> Iterator[Relay]:
    with relaying(service) as between:
        yield between


@pytest.fixture
def model() -> Iterator[StandIn]:
    with standing_in() as playing:
        yield playing
