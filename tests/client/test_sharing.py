"""One client in forked processes and in several event loops: each gets its own answers, over HTTP too."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from runmemory_core import AsyncClient, Client, InvalidRequest, RunMemoryError
from tests.service.serving import Service, running_service

CALLS = 20


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(f"sqlite:///{tmp_path_factory.mktemp('sharing') / 'runs.db'}") as running:
        yield running


def forked(work: Callable[[], None]) -> int:
    """The id of a child that does ``work`` and ends with 0 if it could."""
    if child := os.fork():
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - nothing of a child may reach pytest
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(code)


def ended_well(child: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_processes_that_share_a_client_each_get_their_own_answers(service: Service) -> None:
    with Client(service.url, api_key=service.key) as client:
        client.save_checkpoint("parent", "before the fork")

        def save_often(run_id: str) -> None:
            for n in range(1, CALLS + 1):
                reply = client.save_checkpoint(run_id, f"step {n}", state={"by": run_id, "n": n})
                assert (reply.run_id, reply.step, reply.seq) == (run_id, f"step {n}", n)

        children = [forked(lambda run_id=f"child {n}": save_often(run_id)) for n in range(3)]
        for n in range(CALLS):
            assert client.save_checkpoint("parent", f"beside them {n}").run_id == "parent"
        well = [ended_well(child) for child in children]
        assert all(well)
        for n in range(3):
            found = client.resume(f"child {n}", peek=True).checkpoint
            assert found is not None
            assert (found.seq, found.state) == (CALLS, {"by": f"child {n}", "n": CALLS})
        assert client.save_checkpoint("parent", "after them").seq == CALLS + 2


# What a loop leaves open when it ends, nobody can close.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_async_client_serves_one_event_loop_after_another(service: Service) -> None:
    client = AsyncClient(service.url, api_key=service.key)

    async def save(step: str) -> int | None:
        replies = await asyncio.gather(*(client.save_checkpoint("loops", f"{step} {n}") for n in range(4)))
        return max(reply.seq or 0 for reply in replies)

    async def save_and_close() -> int | None:
        async with client:
            return await save("last")

    assert [asyncio.run(save(f"loop {n}")) for n in range(3)] == [4, 8, 12]
    assert asyncio.run(save_and_close()) == 16
    assert not client._transport._pools  # type: ignore[attr-defined]
    gc.collect()  # here, and not in a test that comes later


class Mistaken(BaseHTTPRequestHandler):
    """Answers each call as if it had been about a run named `other`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        reply = b'{"run_id": "other", "saved": true, "step": "one", "seq": 1}'
        self.send_response(200)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass


@pytest.fixture
def mistaken() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Mistaken) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_answer_about_another_run_is_no_answer(mistaken: str) -> None:
    async def save() -> None:
        async with AsyncClient(mistaken) as client:
            await client.save_checkpoint("mine", "one")

    with Client(mistaken) as client, pytest.raises(RunMemoryError, match="another run than mine"):
        client.save_checkpoint("mine", "one")
    with pytest.raises(RunMemoryError, match="another run than mine"):
        asyncio.run(save())


@pytest.mark.parametrize("opened", [Client, AsyncClient])
def test_what_httpx_cannot_do_is_told_in_words(
    opened: type[Client | AsyncClient], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRequest, match="url is no address of a service"):
        opened("https://host:port")
    monkeypatch.setenv("HTTPS_PROXY", "gopher://proxy")
    with pytest.raises(RunMemoryError, match="cannot prepare connections"):
        opened("https://host")
    monkeypatch.delenv("HTTPS_PROXY")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with pytest.raises(RunMemoryError, match="cannot prepare connections"):
        opened("https://host")


def test_what_breaks_inside_httpx_is_told_in_words(service: Service) -> None:
    with Client(service.url, api_key=service.key) as client:
        pool = client._transport._pool()  # type: ignore[attr-defined]
        assert isinstance(pool, httpx.Client)
        pool.close()
        with pytest.raises(RunMemoryError, match="broke off: RuntimeError"):
            client.usage_and_upgrade()
