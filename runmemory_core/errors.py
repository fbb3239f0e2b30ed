"""Every refusal and failure of Run Memory, as one tree of exceptions.

Each class has a stable ``code`` (what programs compare), an HTTP status (what the service answers) and a
message made of what was refused, the measure, the bound and the way out. A message never holds a value
that was sent: states and keys stay out of logs.

Belongs here: the classes, their wire form (RFC 9457 ``application/problem+json``) and the way back from a
code to its class. Does not belong here: deciding when to raise one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar


class RunMemoryError(Exception):
    """Base of everything Run Memory raises on purpose.

    ``pointers`` maps JSON pointers (RFC 6901) into the request to what is wrong there; ``facts`` holds
    the numbers a program needs to react (``limit``, ``current_seq``, ``retry_after`` in seconds, …).
    """

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500

    def __init__(self, detail: str, *, pointers: Mapping[str, str] | None = None, **facts: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.pointers: dict[str, str] = dict(pointers or {})
        self.facts: dict[str, Any] = facts

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.detail, self.pointers, self.facts))

    def to_problem(self) -> dict[str, Any]:
        """The RFC 9457 body: ``code``, ``title``, ``status``, ``detail``, ``errors`` and the facts."""
        problem: dict[str, Any] = {
            "type": f"urn:runmemory:error:{self.code}",
            "title": self.code.replace("_", " "),
            "status": self.http_status,
            "code": self.code,
            "detail": self.detail,
        }
        if self.pointers:
            problem["errors"] = [{"pointer": p, "detail": d} for p, d in self.pointers.items()]
        return problem | {k: v for k, v in self.facts.items() if k not in problem}


def _rebuild(
    cls: type[RunMemoryError], detail: str, pointers: dict[str, str], facts: dict[str, Any]
) -> RunMemoryError:
    return cls(detail, pointers=pointers, **facts)


# --- the request is not acceptable: sending it again unchanged cannot help -----------------------------


class InvalidRequest(RunMemoryError):
    """An argument is missing, unknown, of the wrong type or out of its bounds; ``pointers`` names it."""

    code = "invalid_request"
    http_status = 422


class InvalidJson(InvalidRequest):
    """A value JSON cannot hold or would change: NaN, a lone surrogate, a tuple, nesting over 64, …"""

    code = "invalid_json"


class CredentialInName(InvalidRequest):
    """A run_id or step contains a credential; names are shown in lists and logs, so it is refused."""

    code = "credential_in_name"


class MalformedBody(RunMemoryError):
    """The HTTP body is not a JSON object."""

    code = "malformed_body"
    http_status = 400


class StateTooLarge(RunMemoryError):
    """A state, part or whole run exceeds its limit in bytes; facts: ``size``, ``limit``, of a run ``channels``."""

    code = "state_too_large"
    http_status = 413


class BodyTooLarge(RunMemoryError):
    """The HTTP body exceeds the cap of its path; facts: ``limit``."""

    code = "body_too_large"
    http_status = 413


class IdempotencyKeyReused(RunMemoryError):
    """The idempotency key was used before with another body: make a new key for each new call."""

    code = "idempotency_key_reused"
    http_status = 422


# --- who is asking --------------------------------------------------------------------------------------


class Unauthorized(RunMemoryError):
    """The API key is malformed, unknown or revoked."""

    code = "unauthorized"
    http_status = 401


class AccountRequired(RunMemoryError):
    """The operation stores something for its caller, which needs a key of an acting plan."""

    code = "account_required"
    http_status = 403


class WrongOrigin(RunMemoryError):
    """The Host or Origin header names what this service does not answer to on `/mcp`; it can be configured."""

    code = "wrong_origin"
    http_status = 403


class OverQuota(RunMemoryError):
    """The calls of this UTC day are used up; nothing was saved. Facts: ``limit``, ``reset_at``."""

    code = "over_quota"
    http_status = 429


# --- the state of the run forbids it --------------------------------------------------------------------


class NotFound(RunMemoryError):
    """No such run, checkpoint, key or path for this account."""

    code = "not_found"
    http_status = 404


class CheckpointGone(RunMemoryError):
    """The checkpoint existed and retention removed it; facts: ``oldest_seq`` still kept, null when none is."""

    code = "checkpoint_gone"
    http_status = 410


class RunDeleted(RunMemoryError):
    """The run was deleted less than 7 days ago; only `resume` or a first checkpoint begins it anew."""

    code = "run_deleted"
    http_status = 410


class RunFinished(RunMemoryError):
    """The run reported `finished`; nothing more is saved until `resume(start_over=True)`."""

    code = "run_finished"
    http_status = 409


class StaleAttempt(RunMemoryError):
    """Another worker resumed this run, or began it anew: stop. Facts: ``attempt`` (yours), ``current_attempt``."""

    code = "stale_attempt"
    http_status = 409


class SeqConflict(RunMemoryError):
    """The run's seq is not the expected one; facts: ``expected_seq``, ``current_seq``."""

    code = "seq_conflict"
    http_status = 409


class AdapterRun(RunMemoryError):
    """The run belongs to a framework adapter, or to the plain tools: it is written by one of them only."""

    code = "adapter_run"
    http_status = 409


# --- Run Memory itself cannot do it now -----------------------------------------------------------------


class Unavailable(RunMemoryError):
    """The service cannot be reached or is stopping; facts: ``retry_after`` in seconds where known."""

    code = "unavailable"
    http_status = 503


class StoreError(RunMemoryError):
    """The database refused to work; nothing of the call was kept."""

    code = "store_error"
    http_status = 500


class StoreTooNew(StoreError):
    """The database was written by a newer release: upgrade this one, or use another file."""

    code = "store_too_new"


class StoreReadOnly(StoreError):
    """The database file or its folder cannot be written."""

    code = "store_read_only"


class StoreFull(StoreError):
    """The disk is full; what was saved stays readable. Free space, then send the call again."""

    code = "store_full"
    http_status = 507


class StoreBusy(StoreError):
    """Another process held the database for longer than the wait."""

    code = "store_busy"
    http_status = 503


def _tree(cls: type[RunMemoryError]) -> Iterable[type[RunMemoryError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _tree(child)


BY_CODE: dict[str, type[RunMemoryError]] = {cls.code: cls for cls in _tree(RunMemoryError)}


def from_problem(
    problem: Mapping[str, Any], *, fallback: type[RunMemoryError] = RunMemoryError
) -> RunMemoryError:
    """The exception that `RunMemoryError.to_problem` described; an unknown code becomes ``fallback``."""
    cls = BY_CODE.get(str(problem.get("code")), fallback)
    listed: list[dict[str, Any]] = problem.get("errors") or []
    pointers = {str(entry.get("pointer")): str(entry.get("detail")) for entry in listed}
    standard = {"type", "title", "status", "code", "detail", "errors"}
    facts = {k: v for k, v in problem.items() if k not in standard}
    return cls(str(problem.get("detail", cls.code)), pointers=pointers, **facts)
