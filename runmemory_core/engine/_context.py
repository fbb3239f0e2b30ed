"""What every use case is given: an open transaction, the caller, and the moment."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from runmemory_core.engine.wording import one_line
from runmemory_core.errors import AccountRequired
from runmemory_core.model import DAY_MS, Caller, Plan, Reply
from runmemory_core.operations._fields import Request
from runmemory_core.operations.calls import Call
from runmemory_core.policy import admission
from runmemory_core.policy.times import day_of, end_of_day, rfc3339
from runmemory_core.store import Tx

WATCHING = "watch:"
"""What a name in `accounts` begins with that holds what watch mode records, so that it never meets real runs."""


class Context:
    """One call's surroundings; the account's row is found or made on demand."""

    __slots__ = ("_account", "_name", "_used", "caller", "now", "tx")

    def __init__(self, tx: Tx, caller: Caller, now_ms: int, *, watching: bool = False) -> None:
        self.tx = tx
        self.caller = caller
        self.now = now_ms
        self._name = WATCHING + caller.account if watching else caller.account
        self._account: Any = None
        self._used: int | None = None

    def kept(self) -> Context:
        """The same caller's real runs, from the surroundings of watch mode: an account may have acted before."""
        kept = Context(self.tx, self.caller, self.now)
        kept._used = self.used()
        return kept

    def _found(self) -> Any:
        if self._account is None:
            self._account = self.tx.one("account_by_name", name=self._name)
            if self._account is None and self.caller.formerly is not None:
                self._account = self.tx.one("account_by_name", name=self._former)
        return self._account

    @property
    def _former(self) -> str:
        prefix = self._name.removesuffix(self.caller.account)
        return f"{prefix}{self.caller.formerly}"

    @property
    def account_id(self) -> int:
        """The account's number; 0, which no account has, while nothing was ever stored for it."""
        found = self._found()
        return 0 if found is None else int(found["account_id"])

    @property
    def salt(self) -> bytes:
        """The key of the hashes that are kept for the account, which has to be open."""
        return bytes(self._found()["salt"])

    @property
    def plan(self) -> Plan:
        """By which the account's runs are kept; the account has to be open."""
        return Plan(self._found()["plan"])

    @property
    def own_term_ms(self) -> int | None:
        """How long what the caller writes is kept by its own wish, which only an embedded store asks for."""
        return self.caller.limits.kept_for_ms if self.caller.plan is Plan.OWN else None

    def open_account(self) -> int:
        """The account's number, made on its first write; one under a former name is given the present one."""
        if self._found() is None:
            plan = self.caller.plan.value
            self._account = self.tx.give("add_account", name=self._name, plan=plan, now=self.now)
        elif self.caller.formerly is not None and self.tx.one("account_by_name", name=self._name) is None:
            self.tx.run("rename_account", account_id=self.account_id, name=self._name)
        return self.account_id

    def run(self, run_id: str) -> Any:
        """The row of a run, or None; a run deleted within the last days is a row with ``deleted_at``."""
        row = self.tx.one("run", account_id=self.account_id, run_id=run_id)
        return None if row is not None and self.long_gone(row) else row

    def long_gone(self, run: Any) -> bool:
        """Whether the run was deleted so long ago that nobody is told any more."""
        deleted_at = run["deleted_at"]
        kept_for_ms = self.caller.limits.tombstones_kept_for_ms
        return deleted_at is not None and deleted_at < self.now - kept_for_ms

    def require_acting(self, what: str) -> None:
        """Raise `AccountRequired` for a caller for whom nothing may be stored."""
        if self.caller.mode == "watch":
            given = "without one" if self.caller.anonymous else f"with one of plan {self.caller.plan.value}"
            raise AccountRequired(
                f"{what} needs an API key of an acting plan; {given} Run Memory only previews: "
                "set RUNMEMORY_API_KEY to such a key, or use the embedded store"
            )

    def used(self) -> int:
        """Metered calls of this UTC day so far."""
        if self._used is None:
            row = self.tx.one("usage", account_id=self.account_id, day=day_of(self.now))
            self._used = 0 if row is None else int(row["calls"])
        return self._used

    def check_quota(self) -> None:
        """Raise `OverQuota` when this call would be one too many."""
        limit = self.caller.limits.calls_a_day
        if limit is not None:
            admission.check_quota(self.used(), limit, now_ms=self.now)

    def over_quota(self) -> bool:
        """Whether the calls of this UTC day are used up."""
        limit = self.caller.limits.calls_a_day
        return limit is not None and self.used() >= limit

    def count_call(self) -> None:
        """Count one metered call."""
        row = self.tx.give("count_call", account_id=self.open_account(), day=day_of(self.now))
        self._used = int(row["calls"])

    def usage(self) -> Reply:
        """The ``usage`` of an envelope."""
        used, limit = self.used(), self.caller.limits.calls_a_day
        usage: Reply = {"used": used}
        if limit is not None:
            usage |= {"limit": limit, "remaining": max(0, limit - used)}
        return usage | {"reset_at": end_of_day(self.now // DAY_MS)}

    def envelope(
        self, *, understood: str, job: str, outcome: str, code: str, notices: tuple[str, ...] = ()
    ) -> Reply:
        """What every tool's reply begins with."""
        reply: Reply = {
            "understood": one_line(understood),
            "job": job,
            "outcome": one_line(outcome),
            "mode": self.caller.mode,
            "code": code,
            "usage": self.usage(),
        }
        limit = self.caller.limits.calls_a_day
        hint = None if limit is None else admission.quota_hint(self.used(), limit, now_ms=self.now)
        if notices or hint:
            reply["notices"] = [*notices, *([hint] if hint else [])]
        return reply


def check_attempt(at: Context, run: Any, attempt: int | None) -> None:
    """Raise `StaleAttempt` when ``attempt`` is not the run's; the time of the takeover is looked up for it."""
    current: int = run["attempt"]
    if attempt is None or attempt == current:
        return
    taken = at.tx.one("attempt", account_id=at.account_id, run=run["run"], attempt=current)
    admission.check_attempt(
        run["run_id"], attempt, current=current, resumed_at=taken["started_at"] if taken else None
    )


def check_tombstone(run: Any, *, begins_anew: bool) -> None:
    """Raise `RunDeleted` for a late write to a run that was deleted or expired."""
    expired = run["status"] == "expired"
    admission.check_tombstone(run["run_id"], run["deleted_at"], begins_anew=begins_anew, expired=expired)


def what_became_of(run: Any) -> str:
    """That a run which is only a tombstone was deleted or expired, and when; nothing for one that is there."""
    if run is None or run["deleted_at"] is None:
        return ""
    return f"{'expired' if run['status'] == 'expired' else 'was deleted'} at {rfc3339(run['deleted_at'])}"


def find_replay(at: Context, idempotency_key: str | None) -> Any:
    """What the key was answered within the last days, or None; whatever became of the run since."""
    if idempotency_key is None:
        return None
    since = at.now - at.caller.limits.replays_kept_for_ms
    return at.tx.one("replay", account_id=at.account_id, idempotency_key=idempotency_key, since=since)


def call_hash(request: Request) -> bytes:
    """What tells two calls with one idempotency key apart: every argument but the key."""
    fields = request.model_dump(exclude={"idempotency_key"}, exclude_defaults=True)
    return blake2b(json.dumps(fields, sort_keys=True).encode(), digest_size=16).digest()


def remember(
    at: Context, call: Call, *, run: int, number: int, body: bytes, state_bytes: int | None = None
) -> None:
    """Record what the call's idempotency key was answered, if it has one."""
    key = getattr(call.request, "idempotency_key", None)
    if key is not None:
        at.tx.run(
            "add_replay",
            account_id=at.account_id,
            run=run,
            idempotency_key=key,
            operation=call.operation.name,
            body=body,
            number=number,
            bytes=state_bytes,
            now=at.now,
        )


def set_status(at: Context, run: Any, status: str) -> None:
    """Set the run's status if it changed: the index that it stands in need not be written otherwise."""
    if status != run["status"]:
        at.tx.run("set_status", account_id=at.account_id, run=run["run"], status=status)
