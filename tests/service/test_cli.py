"""The command line: most commands in this process, what depends on the process in one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runmemory_core import Client, __version__
from runmemory_core.cli import main
from runmemory_core.client import _connect
from runmemory_core.client._calls import make_call
from runmemory_core.client.spooling import SpooledStore
from runmemory_core.operations.storage import CommitReply
from runmemory_core.service import keys
from tests.service.serving import CLI, Service, environment, until

HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
from runmemory_core.cli import main
sys.exit(main(sys.argv[1:]))
"""


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, settings: Mapping[str, str] | None = None) -> Done:
    """One command in this process, with nothing but ``settings`` in the environment."""
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as stdout,
        redirect_stderr(io.StringIO()) as stderr,
    ):
        for name, value in (settings or {}).items():
            patch.setenv(name, value)
        try:
            code = main(arguments)
        except SystemExit as usage_error:
            code = int(usage_error.code or 0)
    return Done(code, stdout.getvalue(), stderr.getvalue())


def spawned(command: list[str], *arguments: str) -> Done:
    """One command in a process of its own."""
    done = subprocess.run(
        [*command, *arguments], env=environment(), capture_output=True, text=True, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def printed(*arguments: str, settings: Mapping[str, str] | None = None) -> Any:
    """What a command prints for programs."""
    done = run(*arguments, "--json", settings=settings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(*arguments: str, settings: Mapping[str, str] | None = None) -> str:
    """The one line with which a command fails."""
    done = run(*arguments, settings=settings)
    assert done.returncode == 1, done.stdout
    assert done.stderr.startswith("runmemory: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Three runs, one of them finished, one with names that mean something to a terminal."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    with Client(url) as client:
        for n in range(3):
            client.save_checkpoint(
                "import", f"page {n}", state={"page": n}, done=[n], next_step=f"page {n + 1}"
            )
        client.save_checkpoint("finished", "all", state={}, status="finished")
        client.save_checkpoint("[red]\x1b[31m", "odd", state={"text": "\x1b[0m[bold]"})
    return url


def test_the_version_is_told() -> None:
    assert spawned(CLI, "--version") == (0, f"runmemory {__version__}\n", "")


def test_a_command_ends_with_its_exit_code_and_one_line(database: str) -> None:
    assert spawned(CLI, "show", "nobody", "--database", database) == (
        1,
        "",
        "runmemory: there is no run nobody in this account\n",
    )
    listed = spawned(CLI, "runs", "--json", "--database", database)
    assert (listed.returncode, len(json.loads(listed.stdout)["runs"])) == (0, 3)


def test_an_unknown_command_is_a_usage_error() -> None:
    done = run("init")
    assert (done.returncode, done.stdout) == (2, "")
    assert "invalid choice: 'init'" in done.stderr


def test_runs_are_listed_newest_first(database: str) -> None:
    listed = printed("runs", "--database", database)
    assert [row["run_id"] for row in listed["runs"]] == ["[red]\x1b[31m", "finished", "import"]
    assert listed["runs"][2] | {"seq": 3, "step": "page 2", "run_status": "running"} == listed["runs"][2]
    assert (listed["mode"], listed["complete"]) == ("acting", True)
    unfinished = printed("runs", "--unfinished", "--database", database)
    assert [row["run_id"] for row in unfinished["runs"]] == ["[red]\x1b[31m", "import"]


def test_people_get_a_table_in_which_no_name_steers_the_terminal(database: str) -> None:
    table = run("runs", "--database", database).stdout
    assert "[red]\N{REPLACEMENT CHARACTER}[31m" in table
    assert "page 2" in table
    shown = run("show", "[red]\x1b[31m", "--database", database).stdout
    assert '"text": "\\u001b[0m[bold]"' in shown
    assert "\x1b" not in table + shown


def test_a_run_that_is_only_looked_at_is_not_said_to_resume(database: str) -> None:
    said = run("show", "import", "--database", database).stdout
    assert said.startswith('At: "page 2", the last step of import that was saved\n')
    assert "Resuming" not in said
    assert "finished" in run("show", "finished", "--database", database).stdout.splitlines()[0]


def test_a_run_that_saved_nothing_is_shown(database: str) -> None:
    with Client(database) as client:
        client.resume("begun")
    shown = run("show", "begun", "--database", database)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "No checkpoint for begun yet" in shown.stdout


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_reader_that_has_enough_ends_the_command_quietly(tmp_path: Path, more: tuple[str, ...]) -> None:
    with Client(f"sqlite:///{tmp_path}/runs.db") as client:
        for number in range(20):
            client.save_checkpoint(f"a run whose name is quite long, number {number}", "step")
    command = [*CLI, "runs", "--database", f"{tmp_path}/runs.db", *more]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command, env=environment(), stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_database_may_be_a_path(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("./runs.db", "runs.db", str(tmp_path / "runs.db")):
        assert len(printed("runs", "--database", place)["runs"]) == 3
        assert printed("keys", "list", "--database", place) == {"keys": []}
    assert printed("keys", "list", settings={"RUNMEMORY_DATABASE": "runs.db"}) == {"keys": []}
    assert [path.name for path in tmp_path.rglob("*.db")] == ["runs.db"]


def test_a_run_is_shown_without_beginning_an_attempt(database: str) -> None:
    assert printed("show", "import", "--database", database)["run"]["attempt"] == 1
    shown = printed("show", "import", "--database", database)
    assert shown["run"]["attempt"] == 1
    assert shown["run"]["checkpoint"]["state"] == {"page": 2}
    assert shown["run"]["in_flight"] == ["page 3"]
    assert [row["seq"] for row in shown["checkpoints"]] == [3, 2, 1]
    assert "outcome unknown: page 3" in run("show", "import", "--database", database).stdout


def test_the_report_and_the_usage_are_printed(database: str) -> None:
    report = printed("report", "--database", database)
    assert report["numbers"]["runs"] == 3
    assert run("report", "--database", database).stdout == report["text"] + "\n"
    usage = printed("usage", "--database", database)
    assert (usage["plan"], usage["usage"]["used"]) == ("own", 5)
    assert "unlimited" in run("usage", "--database", database).stdout


def test_a_deleted_run_is_gone_and_an_unknown_one_is_named(database: str) -> None:
    assert printed("delete", "import", "--database", database) == {"deleted": "import"}
    assert "there is no run import in " in refused("delete", "import", "--database", database)
    assert "there is no run import" in refused("show", "import", "--database", database)


def test_a_key_is_issued_once_listed_and_revoked(tmp_path: Path) -> None:
    place = ["--database", f"sqlite:///{tmp_path / 'runs.db'}"]
    issued = run("keys", "issue", "--account", "acme", "--plan", "pro", "--label", "laptop", *place).stdout
    lines = issued.strip().splitlines()[-2:]
    exported = dict(line.removeprefix("export ").split("=") for line in lines)
    assert exported["RUNMEMORY_URL"] == "http://127.0.0.1:8787"
    assert keys.is_well_formed(exported["RUNMEMORY_API_KEY"])
    (listed,) = printed("keys", "list", *place)["keys"]
    key_id = keys.id_of(exported["RUNMEMORY_API_KEY"])
    known = {"key_id": key_id, "account": "acme", "plan": "pro", "label": "laptop", "revoked_at": None}
    assert listed | known == listed
    assert exported["RUNMEMORY_API_KEY"] not in run("keys", "list", *place).stdout
    assert printed("keys", "revoke", key_id, *place) == {"revoked": key_id}
    assert printed("keys", "list", *place)["keys"][0]["revoked_at"] is not None
    assert "there is no key nobody" in refused("keys", "revoke", "nobody", *place)


@pytest.mark.parametrize("command", [["keys", "list"], ["keys", "revoke", "1"], ["sweep"]])
def test_a_database_that_is_not_there_is_not_made_by_looking_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"there is no database at {tmp_path / 'typo.db'}" in refused(*command, "--database", "typo.db")
    assert list(tmp_path.iterdir()) == []
    assert f"in {tmp_path / 'typo.db'}, shown" in run("keys", "issue", "--database", "./typo.db").stdout


def test_an_issued_key_is_printed_with_the_address_that_programs_use(tmp_path: Path) -> None:
    place = ["--database", str(tmp_path / "runs.db")]
    issued = run("keys", "issue", "--url", "https://memory.example", *place).stdout
    assert "export RUNMEMORY_URL=https://memory.example\n" in issued
    assert "--url takes an address" in refused("keys", "issue", "--url", "memory.example", *place)
    assert len(printed("keys", "list", *place)["keys"]) == 1
    listening = run("keys", "issue", *place, settings={"RUNMEMORY_HOST": "::1"}).stdout
    assert "export RUNMEMORY_URL=http://[::1]:8787\n" in listening


def test_only_what_saves_or_reads_runs_warns_of_a_container(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(_connect.os.path, "ismount", lambda _path: False)
    _connect._tell_once.cache_clear()
    for command in (
        ["keys", "issue"],
        ["keys", "list"],
        ["sweep"],
        ["doctor"],
        ["serve", "--host", "192.0.2.1"],
    ):
        run(*command)
        assert "looks like a container" not in caplog.text, command
    _connect._tell_once.cache_clear()
    run("runs")
    assert "looks like a container" in caplog.text


def test_no_key_is_issued_for_those_who_have_none(tmp_path: Path) -> None:
    place = ["--database", f"sqlite:///{tmp_path / 'runs.db'}"]
    assert "choose another name" in refused("keys", "issue", "--account", "anonymous", *place)
    assert printed("keys", "list", *place) == {"keys": []}


def test_an_issued_key_works_and_a_revoked_one_soon_does_not(service: Service) -> None:
    issued = printed("keys", "issue", "--database", service.database)
    settings = {"RUNMEMORY_URL": service.url, "RUNMEMORY_API_KEY": issued["key"]}
    assert printed("usage", settings=settings)["mode"] == "acting"
    run("keys", "revoke", issued["key_id"], "--database", service.database)
    until(lambda: service.ask("POST", "/api/run/usage_and_upgrade", key=issued["key"]).status == 401)
    assert "unknown or revoked" in refused("usage", settings=settings)


def test_the_commands_ask_a_service_as_well(service: Service, run_id: str) -> None:
    settings = {"RUNMEMORY_API_KEY": service.key}
    service.tool("save_checkpoint", {"run_id": run_id, "step": "one", "state": {"a": 1}})
    shown = printed("show", run_id, "--url", service.url, settings=settings)
    assert shown["run"]["checkpoint"]["state"] == {"a": 1}
    assert run("runs", "--url", service.url).stdout.count("Watch mode") == 1


def test_the_sweep_removes_old_runs_only_when_told_to(database: str) -> None:
    assert printed("sweep", "--database", database) == {"removed": 0}
    assert printed("sweep", "--runs-older-than", "1", "--database", database) == {"removed": 0}
    assert "at least 1 day" in refused("sweep", "--runs-older-than", "0", "--database", database)
    assert len(printed("runs", "--database", database)["runs"]) == 3


def test_the_doctor_finds_a_healthy_file_and_a_healthy_service(database: str, service: Service) -> None:
    found = {finding["what"]: finding for finding in printed("doctor", "--database", database)["findings"]}
    assert all(found[what]["ok"] for what in ("store", "format", "writable"))
    settings = {"RUNMEMORY_URL": service.url, "RUNMEMORY_API_KEY": service.key}
    served = printed("doctor", settings=settings)["findings"]
    assert served[-1] == {
        "what": f"service {service.url}",
        "ok": True,
        "detail": "answers; plan own: saves are stored",
    }
    assert service.key not in json.dumps(served)


def test_the_doctor_names_what_waits_for_a_service(database: str) -> None:
    def waits() -> list[Any]:
        done = run("doctor", "--json", "--database", database)
        return [found for found in json.loads(done.stdout)["findings"] if found["what"] == "waiting"]

    with Client("http://127.0.0.1:9", api_key="rm_0000") as client:
        path = client.spool_file
        store = SpooledStore(client)
        assert waits() == []
        changes = [{"op": "put", "key": key, "state": [["x", {"=": "a value"}]]} for key in ("a", "b")]
        store._keep(CommitReply, make_call("commit", commit_of("the run", changes), remote=False))
        store.close()
    (found,) = waits()
    assert found["ok"] is None
    assert f"{path}: 2 checkpoints of 1 runs since 20" in found["detail"]
    assert "(0 days)" in found["detail"]
    assert f"RUNMEMORY_PREVIOUS_KEY_ID={keys.id_of('rm_0000')}" in found["detail"]
    assert "the run" not in str(found)
    assert "a value" not in str(found)
    path.write_bytes(b"no database" * 1_000)
    (found,) = waits()
    assert (found["ok"], str(path) in found["detail"]) == (False, True)


def commit_of(run_id: str, changes: list[dict[str, Any]]) -> dict[str, Any]:
    return {"run_id": run_id, "adapter": "test", "operations": changes}


def test_the_doctor_fails_for_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_text("no database" * 1_000)
    done = run("doctor", "--json", "--database", f"sqlite:///{tmp_path / 'runs.db'}")
    assert done.returncode == 1
    assert done.stderr == "runmemory: does not work: store\n"
    assert json.loads(done.stdout)["findings"][-1]["ok"] is False


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "99999"], "'99999' is no port"),
        (["--host", "192.0.2.1"], "cannot listen on 192.0.2.1:8787"),
        (["--database", "mysql://me:secret@host/runs"], "use sqlite:///"),
    ],
)
def test_a_service_that_cannot_start_says_why(tmp_path: Path, arguments: list[str], said: str) -> None:
    place = [] if "--database" in arguments else ["--database", f"sqlite:///{tmp_path / 'runs.db'}"]
    line = refused("serve", *place, *arguments)
    assert said in line
    assert "secret" not in line


def test_a_port_that_is_taken_is_named(service: Service, tmp_path: Path) -> None:
    port = str(service.address[1])
    line = refused("serve", "--port", port, "--database", f"sqlite:///{tmp_path / 'runs.db'}")
    assert f"cannot listen on 127.0.0.1:{port}" in line


@pytest.mark.parametrize(
    ("hidden", "arguments", "said"),
    [
        ("rich", ["show", "import"], 'runmemory needs rich: pip install "runmemory[cli]"\n'),
        ("rich", ["usage"], 'runmemory needs rich: pip install "runmemory[cli]"\n'),
        ("rich", ["runs"], 'runmemory needs rich: pip install "runmemory[cli]"\n'),
        ("uvicorn", ["serve"], 'runmemory serve needs uvicorn: pip install "runmemory[server]"\n'),
    ],
)
def test_a_missing_extra_says_what_to_install(
    database: str, hidden: str, arguments: list[str], said: str
) -> None:
    command = [sys.executable, "-c", HIDDEN.format(hidden=hidden)]
    assert spawned(command, *arguments, "--database", database) == (1, "", said)


def test_nothing_but_tables_needs_rich(database: str) -> None:
    command = [sys.executable, "-c", HIDDEN.format(hidden="rich")]
    for arguments in (["runs", "--json"], ["keys", "issue"]):
        assert spawned(command, *arguments, "--database", database).returncode == 0


def test_without_a_database_the_own_file_of_this_machine_is_used(tmp_path: Path) -> None:
    home = Path(os.environ["XDG_DATA_HOME"])
    where = printed("runs")["where"]
    assert where == str(home / "runmemory" / "runmemory.db")
    named = {"RUNMEMORY_DATABASE": f"sqlite:///{tmp_path / 'named.db'}"}
    run("keys", "issue", settings=named)
    assert (tmp_path / "named.db").exists()
