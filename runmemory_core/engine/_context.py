"""What every use case is given: an open transaction, the caller, and the moment."""

from __future__ import annotations

from typing import Any

from runmemory_core.errors import AccountRequired
from runmemory_core.model import DAY_MS, Caller, Reply
from runmemory_core.policy import admission
from runmemory_core.policy.times import day_of, end_of_day
from runmemory_core.store import Tx


class Context:
    """One call's surroundings; the account's row is found or made on demand."""

    __slots__ = ("_account_id", "_used", "caller", "now", "tx")

    def __init__(self, tx: Tx, caller: Caller, now_ms: int) -> None:
        self.tx = tx
        self.caller = caller
        self.now = now_ms
        self._account_id: int | None = None
        self._used: int | None = None

    @property
    def account_id(self) -> int:
        """The account's number; 0, which no account has, while nothing was ever stored for it."""
        if self._account_id is None:
            row = self.tx.one("account_by_name", name=self.caller.account)
            if row is None:
                return 0
            self._account_id = int(row["account_id"])
        return self._account_id

    def open_account(self) -> int:
        """The account's number, made on its first write."""
        if self.account_id == 0:
            row = self.tx.give("add_account", name=self.caller.account, now=self.now)
            self._account_id = int(row["account_id"])
        return self.account_id

    def run(self, run_id: str) -> Any:
        """The row of a run, or None; a deleted run is a row with ``deleted_at``."""
        return self.tx.one("run", account_id=self.account_id, run_id=run_id)

    def require_acting(self, what: str) -> None:
        """Raise `AccountRequired` for a caller for whom nothing may be stored."""
        if self.caller.mode == "watch":
            raise AccountRequired(
                f"{what} needs an API key of an acting plan; without one Run Memory only previews: "
                "set RUNMEMORY_API_KEY, or use the embedded store"
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
            "understood": understood,
            "job": job,
            "outcome": outcome,
            "mode": self.caller.mode,
            "code": code,
            "usage": self.usage(),
        }
        if notices:
            reply["notices"] = list(notices)
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
