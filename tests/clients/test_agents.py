"""Claude Code and Codex, each against a running service: added, listed, and crashing in the middle of work."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from runmemory_core.operations.agents import INSTRUCTIONS
from tests.clients.conftest import CLIENT_SECONDS, ROOT, Clients
from tests.clients.relay import Relay
from tests.clients.stand_in import SILENCE, StandIn, results_in, tool_named
from tests.service.serving import Service

pytestmark = pytest.mark.long

RUN = "invoice-import"


def step(number: int, **more: Any) -> tuple[str, dict[str, Any]]:
    """A save after an invoice."""
    given = {"run_id": RUN, "step": f"invoice {number}", "done": [str(number)], "state": {"cursor": number}}
    return "save_checkpoint", given | more


def claude(clients: Clients, service: Service, model: StandIn) -> tuple[list[str], dict[str, str]]:
    """The command that lets Claude Code work without anybody present."""
    headers = {"Authorization": f"Bearer {clients.environment['RUNMEMORY_API_KEY']}"}
    server = {"type": "http", "url": f"{service.url}/mcp", "headers": headers}
    command, more = claude_as_added(model)
    configured = json.dumps({"mcpServers": {"run-memory": server}})
    return [*command, "--strict-mcp-config", "--mcp-config", configured], more


def claude_as_added(model: StandIn) -> tuple[list[str], dict[str, str]]:
    """The same with the servers that `claude mcp add` wrote down."""
    command = ["claude", "-p", "import the invoices", "--output-format", "json"]
    return [*command, "--allowedTools", "mcp__run-memory"], {"ANTHROPIC_BASE_URL": model.url}


def codex(clients: Clients, service: Service, model: StandIn) -> tuple[list[str], dict[str, str]]:
    """The command that lets Codex work without anybody present."""
    command = codex_as_added(clients, model)
    with (clients.home / "codex" / "config.toml").open("a") as config:
        config.write(f"""
[mcp_servers.run-memory]
url = "{service.url}/mcp"
bearer_token_env_var = "RUNMEMORY_API_KEY"
""")
    return command, {}


def codex_as_added(clients: Clients, model: StandIn) -> list[str]:
    """The same with the servers that `codex mcp add` will write down."""
    (clients.home / "codex" / "config.toml").write_text(f"""
model = "stand-in"
model_provider = "stand-in"

[model_providers.stand-in]
name = "stand-in"
base_url = "{model.url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
""")
    return ["codex", "exec", "--skip-git-repo-check", "--json", "import the invoices"]


def shown_to(model: StandIn) -> list[dict[str, Any]]:
    """What the model was last shown of each tool result, oldest first."""
    return [json.loads(text) for text in results_in(model.asked[-1])]


def crash_and_resume(clients: Clients, model: StandIn, command: list[str], more: dict[str, str]) -> None:
    """Resume, save twice, die while the model thinks; start again and be handed both invoices."""
    model.play([("resume", {"run_id": RUN}), step(1, attempt=1), step(2, attempt=1), SILENCE])
    with clients.start(command, more) as process:
        was_silent = model.silent.wait(CLIENT_SECONDS)
        process.kill()
        assert was_silent, process.communicate()
    first = shown_to(model)
    assert [result["code"] for result in first] == ["new", "saved", "saved"]
    assert "A crash now resumes right here." in first[-1]["outcome"]

    model.play([("resume", {"run_id": RUN}), step(3, attempt=2, status="finished"), "all imported"])
    assert "all imported" in clients.run(command, more)
    resumed, saved = shown_to(model)
    assert (resumed["status"], resumed["attempt"], resumed["restart"]) == ("resumed", 2, True)
    assert resumed["done"] == ["1", "2"]
    assert resumed["checkpoint"]["state"] == {"cursor": 2}
    assert (saved["saved"], saved["seq"]) == (True, 3)


@pytest.fixture(params=["claude", "codex"])
def agent(
    request: pytest.FixtureRequest, clients: Clients, service: Service, model: StandIn
) -> tuple[list[str], dict[str, str]]:
    return claude(clients, service, model) if request.param == "claude" else codex(clients, service, model)


def test_an_agent_that_is_killed_goes_on_where_it_was(
    clients: Clients, model: StandIn, agent: tuple[list[str], dict[str, str]]
) -> None:
    crash_and_resume(clients, model, *agent)


def test_the_model_is_given_the_instructions_and_the_two_tools_it_needs(
    clients: Clients, model: StandIn, agent: tuple[list[str], dict[str, str]]
) -> None:
    model.play(["nothing to do"])
    command, more = agent
    clients.run(command, more)
    request = model.asked[0]
    assert json.dumps(INSTRUCTIONS.strip())[1:-1] in json.dumps(request)
    for name in ("resume", "save_checkpoint"):
        assert tool_named(request, name)


def test_a_refusal_reaches_the_model_in_words(
    clients: Clients, model: StandIn, agent: tuple[list[str], dict[str, str]]
) -> None:
    model.play([("save_checkpoint", {"run_id": RUN}), "I see"])
    command, more = agent
    clients.run(command, more)
    assert "step is required by save_checkpoint" in json.dumps(model.asked[-1])


LONG = {"run_id": RUN, "step": "read", "state": {"text": "0123456789" * 20_480}}


def save_long(service: Service, key: str) -> None:
    assert service.ask("POST", "/api/run/save_checkpoint", LONG, key=key).json["saved"]


def test_claude_code_hands_a_state_of_200_kb_to_the_model_whole(
    clients: Clients, service: Service, model: StandIn, key: str
) -> None:
    save_long(service, key)
    model.play([("resume", {"run_id": RUN}), "I see"])
    command, more = claude(clients, service, model)
    clients.run(command, more)
    (resumed,) = shown_to(model)
    assert resumed["checkpoint"]["state"] == LONG["state"]


def test_codex_hands_a_state_of_200_kb_to_the_model_as_a_head_that_says_where_the_rest_is(
    clients: Clients, service: Service, model: StandIn, key: str
) -> None:
    save_long(service, key)
    model.play([("resume", {"run_id": RUN}), "I see"])
    command, more = codex(clients, service, model)
    clients.run(command, more)
    (output,) = results_in(model.asked[-1])
    assert len(output) < 100_000
    assert '"status":"resumed"' in output[:2_000]
    found = re.search(rf"GET {re.escape(service.url)}(\S+)&offset=0&length=10000", output[:4_000])
    assert found
    assert service.ask("GET", found[1], key=key).json == LONG["state"]


# --- the commands people paste ------------------------------------------------------------------------------


def pasted(clients: Clients, example: str, service: Service) -> None:
    """The lines of an example, as the README shows them, but for the port."""
    lines = (ROOT / "examples" / example).read_text()
    own = lines.replace("http://127.0.0.1:8787", service.url)
    clients.run(["bash", "-euo", "pipefail", "-c", own.replace('pip install "runmemory[mcp]"\n', "")])


def test_what_the_readme_says_to_paste_connects(clients: Clients, service: Service) -> None:
    pasted(clients, "mcp_add.sh", service)
    assert re.search(r"run-memory: \S+/mcp \(HTTP\) - \S* ?Connected", clients.run(["claude", "mcp", "list"]))
    assert "Connected" in clients.run(["claude", "mcp", "get", "run-memory"])
    listed = clients.run(["codex", "mcp", "list"])
    assert re.search(r"run-memory\s+\S+/mcp\s+RUNMEMORY_API_KEY\s+enabled\s+Bearer token", listed)


def test_the_local_command_connects(clients: Clients, service: Service, tmp_path: Path) -> None:
    command = tmp_path / "runmemory"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m runmemory_core.cli "$@"\n')
    command.chmod(0o755)
    # Who has a service's key set means that service, and the local command refuses to save elsewhere.
    without = {name: value for name, value in clients.environment.items() if name != "RUNMEMORY_API_KEY"}
    here = Clients(clients.folder, clients.home, without | {"PATH": local_path(clients, tmp_path)})
    pasted(here, "mcp_add_local.sh", service)
    assert re.search(r"run-memory: runmemory mcp - \S* ?Connected", here.run(["claude", "mcp", "list"]))
    assert re.search(r"run-memory\s+runmemory\s+mcp", here.run(["codex", "mcp", "list"]))


def local_path(clients: Clients, folder: Path) -> str:
    return f"{folder}{os.pathsep}{clients.environment['PATH']}"


def test_claude_code_says_that_a_wrong_key_is_wrong_and_asks_for_no_login(
    clients: Clients, service: Service
) -> None:
    added = ["claude", "mcp", "add", "--transport", "http", "run-memory", f"{service.url}/mcp"]
    clients.run([*added, "--header", "Authorization: Bearer rmk_live_wrong"])
    listed = clients.run(["claude", "mcp", "list"])
    assert "401" in listed
    assert "Needs authentication" not in listed


# --- without a key ------------------------------------------------------------------------------------------


def add_to_claude(clients: Clients, relay: Relay) -> None:
    clients.run(["claude", "mcp", "add", "--transport", "http", "run-memory", f"{relay.service.url}/mcp"])


def add_to_codex(clients: Clients, relay: Relay) -> None:
    said = clients.run(["codex", "mcp", "add", "run-memory", "--url", f"{relay.service.url}/mcp"])
    assert "oauth" not in said.lower()


def assert_no_login(relay: Relay) -> None:
    """Who looked for a login was told in JSON that there is none, and nobody was asked for a key."""
    for method, path, answer in relay.heard:
        if path != "/mcp":
            assert "/.well-known/" in path, (method, path)
            assert (answer.status, answer.code) == (404, "not_found")
        elif method == "POST":
            assert answer.status in {200, 202}, answer.body


def test_claude_code_connects_without_a_key_and_finds_no_login(clients: Clients, relay: Relay) -> None:
    add_to_claude(clients, relay)
    assert re.search(r"run-memory: \S+/mcp \(HTTP\) - \S* ?Connected", clients.run(["claude", "mcp", "list"]))
    assert "Connected" in clients.run(["claude", "mcp", "get", "run-memory"])
    assert "/mcp" in relay.paths()
    assert_no_login(relay)


def test_codex_is_added_without_a_key_looks_for_a_login_and_finds_none(
    clients: Clients, relay: Relay
) -> None:
    add_to_codex(clients, relay)
    assert "/.well-known/oauth-authorization-server/mcp" in relay.paths()
    listed = clients.run(["codex", "mcp", "list"])
    assert re.search(r"run-memory\s+\S+/mcp\s+-\s+enabled\s+Unsupported", listed)
    got = clients.run(["codex", "mcp", "get", "run-memory"])
    assert f"url: {relay.service.url}/mcp" in got
    assert "bearer_token_env_var: -" in got
    assert_no_login(relay)


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_without_a_key_an_agent_works_in_watch_mode(
    clients: Clients, relay: Relay, model: StandIn, name: str
) -> None:
    if name == "claude":
        add_to_claude(clients, relay)
        command, more = claude_as_added(model)
    else:
        command, more = codex_as_added(clients, model), {}
        add_to_codex(clients, relay)
    model.play([("resume", {"run_id": RUN}), step(1), "all imported"])
    assert "all imported" in clients.run(command, more)
    resumed, saved = shown_to(model)
    assert (resumed["mode"], saved["mode"], saved["saved"]) == ("watch", "watch", False)
    assert saved["would_save"]["state"] == {"cursor": 1}
    assert_no_login(relay)
