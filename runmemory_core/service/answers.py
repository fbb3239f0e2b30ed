"""Answers over ASGI: JSON, and every refusal as RFC 9457 ``application/problem+json``."""

from __future__ import annotations

import logging
import secrets
import traceback
from collections.abc import Mapping
from copy import copy
from http import HTTPStatus
from typing import Any

from starlette.types import Send

from runmemory_core.errors import OverQuota, RunMemoryError, StoreError, Unavailable
from runmemory_core.model import DAY_MS
from runmemory_core.operations.wire import write
from runmemory_core.policy.times import next_day

logger = logging.getLogger("runmemory.service")

Headers = list[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
TEXT = (b"content-type", b"text/plain; charset=utf-8")
PROBLEM = (b"content-type", b"application/problem+json")
_OK = 200


def rate_limit(limit: int, remaining: int, *, now_ms: int) -> Headers:
    """The quota in the form of draft-ietf-httpapi-ratelimit-headers-10: the policy, and what is left of it."""
    seconds = (next_day(now_ms) - now_ms + 999) // 1_000
    return [
        (b"ratelimit-policy", f'"day";q={limit};w={DAY_MS // 1_000}'.encode()),
        (b"ratelimit", f'"day";r={remaining};t={seconds}'.encode()),
    ]


async def answer(send: Send, body: bytes, *, status: int = _OK, headers: Headers | None = None) -> None:
    """Send a whole answer; it is JSON unless ``headers`` begin with another type."""
    length = (b"content-length", str(len(body)).encode())
    headers = [*(headers or (JSON,)), length]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, error: RunMemoryError, *, now_ms: int = 0) -> None:
    """Answer with a refusal and what a client should know beside it."""
    headers: Headers = [PROBLEM, *refusal_headers(error, now_ms=now_ms)]
    await answer(send, write(error.to_problem()).encode(), status=error.http_status, headers=headers)


def while_stopping() -> Unavailable:
    """What a call that comes while the service stops is told."""
    return Unavailable("the service is stopping: send the call again in a moment", retry_after=1)


def discreet(error: RunMemoryError, *, where: str) -> RunMemoryError:
    """What a caller is told of an error: when the store failed, only the log says ``where`` it lies.

    Other refusals are the caller's affair, and are returned as they are.
    """
    if not isinstance(error, StoreError):
        return error
    logger.error("%s: %s", error.code, error.detail)
    # One failure may be the answer to many callers, so it is not itself changed.
    told = copy(error)
    told.detail = error.detail.replace(where, "the database")
    return told


def refusal_headers(error: RunMemoryError, *, now_ms: int = 0) -> Headers:
    """What HTTP says beside a refusal: how to authenticate, when to try again, what of the day is left."""
    headers: Headers = []
    if error.http_status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    retry_after = error.facts.get("retry_after")
    if retry_after is None and error.http_status == HTTPStatus.SERVICE_UNAVAILABLE:
        retry_after = 1
    if retry_after is not None:
        headers.append((b"retry-after", str(retry_after).encode()))
    if isinstance(error, OverQuota):
        headers += rate_limit(error.facts["limit"], 0, now_ms=now_ms)
    return headers


async def refuse_http(send: Send, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
    """Answer with what HTTP itself refuses: an unknown path, a wrong method."""
    phrase = HTTPStatus(status).phrase.lower()
    problem: dict[str, Any] = {
        "type": f"urn:runmemory:error:{phrase.replace(' ', '_')}",
        "title": phrase,
        "status": status,
        "code": phrase.replace(" ", "_"),
        "detail": detail,
    }
    more = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    await answer(send, write(problem).encode(), status=status, headers=[PROBLEM, *more])


async def confess(send: Send, error: Exception) -> None:
    """Answer 500 for a fault of ours."""
    await refuse(send, fault(error))


def fault(error: Exception) -> RunMemoryError:
    """What to say of a fault of ours, with a reference under which the log has the place.

    An exception's message may quote what was sent, so neither the answer nor the log shows it.
    """
    reference = secrets.token_hex(6)
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("fault %s: %s\n%s", reference, type(error).__name__, frames)
    return RunMemoryError(
        f"the service failed; nothing of this call was confirmed. Its log has the place under {reference}",
        reference=reference,
    )
