"""One call over an unreliable network: what is sent again, when, and what is raised in the end."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import repeat
from threading import Thread
from typing import Any, ClassVar

import pytest

from runmemory_core import (
    AsyncClient,
    Client,
    OverQuota,
    RunMemoryError,
    StaleAttempt,
    StoreError,
    Unauthorized,
    Unavailable,
)
from runmemory_core.errors import StoreBusy, StoreFull
from runmemory_core.operations.agents import PROBLEM_META
from runmemory_core.transports import retries
from runmemory_core.transports.retries import Answer, Failure, Pause, Read, Send, conversation
from runmemory_core.transports.wires import MCP, REST, Wire

WHERE = "https://memory.example"
GOOD = Answer(200, {}, b'{"seq":1}')
AWAY = Answer(503, {}, b"")


def talk(
    *reports: Answer | Failure, jitter: Iterator[float] | None = None, read: Read | None = None
) -> tuple[list[float], Any]:
    """The pauses that are asked for, and the reply or the exception in the end; every report is used."""
    commands = conversation(WHERE, jitter=jitter, read=read)
    pauses: list[float] = []
    waiting = list(reports)
    report: Answer | Failure | None = None
    try:
        while True:
            match commands.send(report):
                case Send():
                    report = waiting.pop(0)
                case Pause(seconds=seconds):
                    pauses.append(seconds)
                    report = None
    except StopIteration as done:
        result = done.value
    except RunMemoryError as error:
        result = error
    assert not waiting
    return pauses, result


def problem(error: RunMemoryError) -> Answer:
    return Answer(error.http_status, {}, json.dumps(error.to_problem()).encode())


def test_a_reply_is_taken_at_once() -> None:
    assert talk(GOOD) == ([], {"seq": 1})


@pytest.mark.parametrize("failure", [AWAY, Answer(502, {}, b""), Answer(504, {}, b"{}"), Failure("refused")])
def test_what_may_pass_is_tried_again_after_longer_pauses(failure: Answer | Failure) -> None:
    assert talk(failure, GOOD) == ([0.1], {"seq": 1})
    assert talk(failure, failure, failure, GOOD) == ([0.1, 0.4, 1.6], {"seq": 1})


def test_pauses_are_spread() -> None:
    assert talk(AWAY, AWAY, GOOD, jitter=repeat(1.5))[0] == pytest.approx([0.15, 0.6])


@pytest.mark.parametrize(
    ("asked", "pause"), [("2", 2.0), ("0", 0.1), ("9999", 20.0), ("Wed, 21 Oct 2026", 0.1), ("-3", 0.1)]
)
def test_a_pause_is_as_long_as_the_service_asks_within_reason(asked: str, pause: float) -> None:
    assert talk(Answer(503, {"retry-after": asked}, b""), GOOD) == ([pause], {"seq": 1})


@pytest.mark.parametrize(("failure", "words"), [(AWAY, "it answered 503"), (Failure("refused"), "refused")])
def test_after_the_fourth_try_it_is_unavailable_with_the_url(failure: Answer | Failure, words: str) -> None:
    pauses, error = talk(*[failure] * 4)
    assert pauses == [0.1, 0.4, 1.6]
    assert isinstance(error, Unavailable)
    assert error.detail.startswith(f"{WHERE} cannot be reached: {words}, 4 times. Nothing was confirmed")
    assert error.facts == {"url": WHERE}


@pytest.mark.parametrize(
    "refusal",
    [
        OverQuota("no", limit=500, reset_at="2026-03-02T00:00:00.000Z", retry_after=5),
        StaleAttempt("no", attempt=1, current_attempt=2),
        StoreFull("no"),
        StoreError("no"),
        Unauthorized("no"),
    ],
)
def test_a_refusal_is_raised_as_it_was_and_never_repeated(refusal: RunMemoryError) -> None:
    pauses, error = talk(problem(refusal))
    assert pauses == []
    assert type(error) is type(refusal)
    assert (error.detail, error.facts) == (refusal.detail, refusal.facts)


@pytest.mark.parametrize(
    "answer",
    [Answer(200, {}, b"<html>"), Answer(200, {}, b"[]"), Answer(404, {}, b""), Answer(500, {}, b'{"a":1}')],
)
def test_what_is_not_run_memorys_answer_is_said_so(answer: Answer) -> None:
    _, error = talk(answer)
    assert type(error) is RunMemoryError
    assert error.detail.startswith(
        f"{WHERE} answered {answer.status} with something that is not Run Memory's"
    )


def test_a_code_of_a_newer_service_is_an_error_all_the_same() -> None:
    _, error = talk(Answer(418, {}, b'{"code":"teapot","detail":"short and stout"}'))
    assert type(error) is RunMemoryError
    assert error.detail == "short and stout"


# --- over real sockets ----------------------------------------------------------------------------------


class Reluctant(BaseHTTPRequestHandler):
    """Answers as `answers` says, one after the other, and keeps what it was sent."""

    answers: ClassVar[list[int]] = []
    bodies: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.bodies.append(json.loads(body))
        status = self.answers.pop(0)
        if status == 0:
            self.close_connection = True
            return
        usage = {"used": 1, "reset_at": "2026-03-02T00:00:00.000Z"}
        envelope = {
            "understood": "",
            "job": "",
            "outcome": "",
            "mode": "acting",
            "code": "saved",
            "usage": usage,
        }
        reply = json.dumps(envelope | {"saved": True, "run_id": "import", "step": "one", "seq": 1}).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        pass


@pytest.fixture
def reluctant(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(retries, "PAUSES_SECONDS", (0.0, 0.0, 0.0))
    Reluctant.answers, Reluctant.bodies = [], []
    with HTTPServer(("127.0.0.1", 0), Reluctant) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def save_blocking(url: str) -> int | None:
    with Client(url) as client:
        return client.save_checkpoint("import", "one", state={"a": 1}).seq


def save_async(url: str) -> int | None:
    async def save() -> int | None:
        async with AsyncClient(url) as client:
            return (await client.save_checkpoint("import", "one", state={"a": 1})).seq

    import asyncio

    return asyncio.run(save())


@pytest.mark.parametrize("save", [save_blocking, save_async])
@pytest.mark.parametrize("answers", [[503, 200], [0, 200], [502, 0, 504, 200]])
def test_a_save_is_repeated_with_the_same_key_until_it_is_answered(
    reluctant: str, save: Any, answers: list[int]
) -> None:
    Reluctant.answers = list(answers)
    assert save(reluctant) == 1
    assert len(Reluctant.bodies) == len(answers)
    assert all(body == Reluctant.bodies[0] for body in Reluctant.bodies)
    assert Reluctant.bodies[0]["state"] == {"a": 1}
    assert Reluctant.bodies[0]["idempotency_key"]


def test_each_call_has_a_key_of_its_own(reluctant: str) -> None:
    Reluctant.answers = [200, 200]
    save_blocking(reluctant)
    save_blocking(reluctant)
    first, second = Reluctant.bodies
    assert first["idempotency_key"] != second["idempotency_key"]


@pytest.mark.parametrize("save", [save_blocking, save_async])
def test_a_service_that_is_away_is_unavailable(monkeypatch: pytest.MonkeyPatch, save: Any) -> None:
    monkeypatch.setattr(retries, "PAUSES_SECONDS", (0.0, 0.0, 0.0))
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(Unavailable, match=f"^{url} cannot be reached: .*, 4 times") as error:
            save(url)
    assert error.value.facts == {"url": url}


def test_a_key_that_no_key_can_be_is_refused_before_it_is_sent() -> None:
    for key in ("rmk_live_a b", "rmk_live_ü", "rmk\nlive"):
        with pytest.raises(Unauthorized, match="copy it again") as refusal:
            Client("https://memory.example", api_key=key)
        assert key not in refusal.value.detail


def test_a_service_that_stays_busy_is_told_in_its_own_words() -> None:
    problem = b'{"code":"store_busy","detail":"another process held the database","retry_after":2}'
    commands = conversation("https://host")

    def carry_out() -> None:
        report = None
        while True:
            report = Answer(503, {}, problem) if isinstance(commands.send(report), Send) else None

    with pytest.raises(StoreBusy, match="another process held the database"):
        carry_out()


# --- the same over both wires ---------------------------------------------------------------------------


def over_rest(error: RunMemoryError) -> Answer:
    return problem(error)


def over_mcp(error: RunMemoryError) -> Answer:
    """A refusal before any tool was called."""
    body = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32603, "message": "", "data": error.to_problem()},
    }
    return Answer(error.http_status, {}, json.dumps(body).encode())


def in_a_result(error: RunMemoryError) -> Answer:
    """A refusal by a tool."""
    result = {"isError": True, "content": [], "_meta": {PROBLEM_META: error.to_problem()}}
    return Answer(200, {}, json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())


@pytest.mark.parametrize(
    ("wire", "put"), [(REST, over_rest), (MCP, over_mcp), (MCP, in_a_result)], ids=["rest", "mcp", "result"]
)
@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (Unavailable("the service is stopping", retry_after=1), 4),
        (StoreBusy("the database is busy"), 4),
        (StoreError("the database: broken"), 1),
        (StoreFull("the disk is full"), 1),
        (OverQuota("no", limit=1), 1),
        (StaleAttempt("stop", current_attempt=2), 1),
    ],
    ids=lambda value: getattr(value, "code", value),
)
def test_both_wires_try_as_often_and_end_with_the_services_own_words(
    wire: Wire, put: Callable[[RunMemoryError], Answer], error: RunMemoryError, tries: int
) -> None:
    pauses, raised = talk(*[put(error)] * tries, read=wire.read)
    assert len(pauses) == tries - 1
    assert type(raised) is type(error)
    assert (raised.detail, raised.facts) == (error.detail, error.facts)


@pytest.mark.parametrize("wire", [REST, MCP], ids=["rest", "mcp"])
@pytest.mark.parametrize("failure", [AWAY, Answer(502, {}, b"<html>"), Failure("refused")])
def test_over_both_wires_nobodys_answer_means_out_of_reach(wire: Wire, failure: Answer | Failure) -> None:
    pauses, raised = talk(*[failure] * 4, read=wire.read)
    assert len(pauses) == 3
    assert type(raised) is Unavailable
    assert "cannot be reached" in raised.detail


def test_without_retries_the_service_is_asked_once():
    commands = conversation("https://host", pauses=())
    assert isinstance(commands.send(None), Send)
    with pytest.raises(Unavailable, match="cannot be reached: refused\\. Nothing"):
        commands.send(Failure("refused"))
