"""One call over an unreliable network, as a pure conversation that a blocking or an async driver carries out.

Sending the same bytes again is safe, because the idempotency key inside them was made once, before.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, cast

from pydantic_core import from_json

from runmemory_core.errors import RunMemoryError, Unavailable, from_problem
from runmemory_core.model import Reply

PAUSES_SECONDS = (0.1, 0.4, 1.6)
LONGEST_PAUSE_SECONDS = 20.0
_AGAIN = frozenset({502, 503, 504})
_OK = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back over HTTP; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer came; ``reason`` is for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class Send:
    """Command: send the request and report an `Answer` or a `Failure`."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Command: wait."""

    seconds: float


Read = Callable[[Answer, str], Reply]
Commands = Generator[Send | Pause, Answer | Failure | None, Reply]


def conversation(
    where: str,
    *,
    jitter: Iterator[float] | None = None,
    read: Read | None = None,
    pauses: Sequence[float] = PAUSES_SECONDS,
) -> Commands:
    """Yield what to do next until the reply is known; ``jitter`` gives factors around 1 for the ``pauses``.

    ``read`` makes the reply of an answer where it is not the operation's own JSON.

    Raises the exception the service described, or `Unavailable` with ``where`` after the last try. Over quota
    (429) is an answer, never repeated.
    """
    factors = jitter or repeat(1.0)
    problem, refusal = "", None
    for pause in (*pauses, None):
        report = yield Send()
        match report:
            case Answer(status=status, headers=headers):
                try:
                    return (read or read_reply)(report, where)
                except _NobodysAnswer as error:
                    problem, refusal = error.detail, None
                except RunMemoryError as error:
                    # Over MCP what hinders the service stands in a result of status 200.
                    if status not in _AGAIN and error.http_status not in _AGAIN:
                        raise
                    refusal = error
                wait = _retry_after(headers)
            case Failure(reason=reason):
                problem, refusal, wait = reason, None, None
            case None:
                raise RuntimeError("a driver reports an Answer or a Failure for each Send")
        if pause is not None:
            yield Pause(min(LONGEST_PAUSE_SECONDS, max(wait or 0.0, pause * next(factors))))
    if refusal is not None:
        raise refusal  # the service was reached, and said what hinders it
    times = f", {len(pauses) + 1} times" if pauses else ""
    raise Unavailable(
        f"{where} cannot be reached: {problem}{times}. Nothing was confirmed: check the URL and that "
        "the service runs, then send the call again",
        url=where,
    )


class _NobodysAnswer(Unavailable):
    """What stands before the service answered that it cannot be reached."""


def read_reply(answer: Answer, where: str) -> Reply:
    """The reply in an answer of an operation's own path; raises what a refusal describes."""
    body = _object(answer.body)
    if answer.status == _OK and body is not None:
        return body
    if body is not None and "code" in body:
        raise from_problem(body)
    raise not_ours(answer, where)


def not_ours(answer: Answer, where: str) -> RunMemoryError:
    """What to raise when something else than Run Memory answered."""
    if answer.status in _AGAIN:
        return _NobodysAnswer(f"it answered {answer.status}")
    return RunMemoryError(
        f"{where} answered {answer.status} with something that is not Run Memory's JSON: is the URL right?"
    )


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after", "")
    return float(value) if value.isdecimal() else None
