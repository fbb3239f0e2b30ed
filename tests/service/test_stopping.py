"""A stop or a kill in the middle of work: what was acknowledged is there afterwards, once."""

from __future__ import annotations

import http.client
import json
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from runmemory_core import Client, Unavailable
from tests.service.messages import HANDSHAKE, MODERN, headers_for, message, post
from tests.service.serving import PATIENCE_SECONDS, Service, answer_of, running_service, until

SAVE = "/api/run/save_checkpoint"
WORKERS = 8


class Load:
    """Workers that save as fast as they are answered, each a run of its own; what was acknowledged."""

    def __init__(self, save: Callable[[str, int], int], *, until_step: int | None = None) -> None:
        self.acknowledged: list[tuple[str, int, int]] = []
        self._save = save
        self._until_step = until_step
        self._threads = [threading.Thread(target=self._work, args=(f"run {n}",)) for n in range(WORKERS)]
        for thread in self._threads:
            thread.start()

    def _work(self, run_id: str) -> None:
        step = 0
        with suppress(Unavailable, http.client.HTTPException, OSError):
            while step != self._until_step:
                step += 1
                self.acknowledged.append((run_id, step, self._save(run_id, step)))

    def wait(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()


def kept_in(database: str) -> dict[tuple[str, int], dict[str, object] | None]:
    """The state of each kept checkpoint of the workers, read from the file itself."""
    kept: dict[tuple[str, int], dict[str, object] | None] = {}
    with Client(database) as client:
        for run_id in (f"run {n}" for n in range(WORKERS)):
            for seq in range(1, client.list_checkpoints(run_id, limit=1).checkpoints[0].seq + 1):
                checkpoint = client.resume(run_id, peek=True, seq=seq).checkpoint
                assert checkpoint is not None
                kept[run_id, seq] = checkpoint.state
    return kept


def test_a_stop_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'runs.db'}"
    with running_service(database) as service:

        def save(run_id: str, step: int) -> int:
            body = {"run_id": run_id, "step": f"step {step}", "state": {"cursor": step}}
            answer = service.tool("save_checkpoint", body)
            if answer.status == 503:
                raise Unavailable(answer.code)
            assert answer.status == 200
            return answer.json["seq"]

        load = Load(save)
        until(lambda: len(load.acknowledged) > 200)
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(PATIENCE_SECONDS) == 0
        load.wait()
    kept = kept_in(database)
    assert all(kept[run_id, seq] == {"cursor": step} for run_id, step, seq in load.acknowledged)
    assert {run_id for run_id, _, _ in load.acknowledged} == {f"run {n}" for n in range(WORKERS)}


def test_a_stopping_service_finishes_what_it_began_and_sends_new_requests_away(tmp_path: Path) -> None:
    body = json.dumps({"run_id": "r", "step": "one", "state": {"a": 1}}).encode()
    with running_service(f"sqlite:///{tmp_path / 'runs.db'}") as service:
        head = f"POST {SAVE} HTTP/1.1\r\nauthorization: {service.key}\r\ncontent-length: {len(body)}"
        with service.connect() as connection:
            connection.sendall(f"{head}\r\nexpect: 100-continue\r\n\r\n".encode())
            assert connection.recv(64).startswith(b"HTTP/1.1 100")  # so it was begun
            service.process.send_signal(signal.SIGTERM)
            refused = until(lambda: _refused(service))
            assert (refused.code, refused.headers["retry-after"]) == ("unavailable", "1")
            connection.sendall(body)
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert answer_of(response).json["saved"]
        assert service.process.wait(PATIENCE_SECONDS) == 0
        assert "Traceback" not in service.log.read_text()


def _refused(service: Service):
    answer = service.ask("GET", "/healthz")
    return answer if answer.status == 503 else None


@pytest.mark.parametrize("revision", [HANDSHAKE[0], MODERN])
def test_a_stopping_service_finishes_the_mcp_call_it_began_and_sends_new_ones_away(
    tmp_path: Path, revision: str
) -> None:
    step = {"run_id": "r", "step": "one", "state": {"a": 1}}
    sent = message("tools/call", {"name": "save_checkpoint", "arguments": step}, revision=revision)
    body = json.dumps(sent).encode()
    with running_service(f"sqlite:///{tmp_path / 'runs.db'}") as service:
        headers = headers_for(sent, revision=revision) | {
            "host": service.url[7:],
            "authorization": service.key,
            "content-length": str(len(body)),
            "expect": "100-continue",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        with service.connect() as connection:
            connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode())
            assert connection.recv(64).startswith(b"HTTP/1.1 100")  # so it was begun
            service.process.send_signal(signal.SIGTERM)
            until(lambda: _refused(service))
            refused = post(service, "tools/call", {"name": "resume", "arguments": {}}, revision=revision)
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            assert "stopping" in refused.json["error"]["message"]
            connection.sendall(body)
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert answer_of(response).json["result"]["structuredContent"]["saved"]
        assert service.process.wait(PATIENCE_SECONDS) == 0
        assert "Traceback" not in service.log.read_text()
    with Client(service.database) as client:
        checkpoint = client.resume("r", peek=True).checkpoint
        assert checkpoint is not None
        assert (checkpoint.seq, checkpoint.state) == (1, {"a": 1})


def test_ctrl_c_stops_the_service_as_well(tmp_path: Path) -> None:
    with running_service(f"sqlite:///{tmp_path / 'runs.db'}") as service:
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(PATIENCE_SECONDS) == 0
        assert service.log.read_text() == ""


def test_a_service_killed_three_times_loses_nothing_and_counts_each_save_once(tmp_path: Path) -> None:
    """Each save has one idempotency key, and is sent again with it until it is answered."""
    database, saves = f"sqlite:///{tmp_path / 'runs.db'}", 100
    with ExitStack() as services:
        service = services.enter_context(running_service(database))
        client = services.enter_context(Client(service.url, api_key=service.key))

        def save(run_id: str, step: int) -> int:
            while True:
                with suppress(Unavailable):
                    key = f"{run_id}, {step}"
                    state = {"cursor": step}
                    reply = client.save_checkpoint(run_id, f"step {step}", state=state, idempotency_key=key)
                    assert reply.seq is not None
                    return reply.seq

        load = Load(save, until_step=saves)
        for kills in range(3):
            until(lambda enough=(kills + 1) * 150: len(load.acknowledged) > enough)
            service.process.kill()
            service.process.wait(PATIENCE_SECONDS)
            service = services.enter_context(running_service(database, port=service.address[1]))
        load.wait()
        used = client.usage_and_upgrade().usage.used
    kept = kept_in(database)
    assert kept == {
        (f"run {n}", step): {"cursor": step} for n in range(WORKERS) for step in range(1, saves + 1)
    }
    assert sorted(load.acknowledged) == [(run_id, seq, seq) for run_id, seq in sorted(kept)]
    assert used == WORKERS * saves
