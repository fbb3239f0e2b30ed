"""API keys: who a key stands for, and issuing, listing and revoking them.

A key itself never reaches this floor, only its SHA-256; how keys look is the service's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runmemory_core.engine._context import Context
from runmemory_core.errors import InvalidRequest, NotFound
from runmemory_core.model import LIMITS, Caller, Plan
from runmemory_core.store import Tx

ANONYMOUS = Caller(account="anonymous", plan=Plan.WATCH, limits=LIMITS[Plan.WATCH], anonymous=True)
"""Everybody who calls without a key."""

NAME_CHARACTERS = 200


def caller_of_key(tx: Tx, key_sha256: bytes) -> Caller | None:
    """Whom the key with this hash stands for; None when it is unknown or revoked."""
    row = tx.one("key_by_hash", key_sha256=key_sha256)
    if row is None or row["revoked_at"] is not None:
        return None
    plan = Plan(row["plan"])
    return Caller(account=row["account"], plan=plan, limits=LIMITS[plan])


def issue_key(
    tx: Tx, key_sha256: bytes, *, key_id: str, account: str, plan: Plan, label: str, now_ms: int
) -> None:
    """Record a new key, and its account when missing; raises `InvalidRequest` for a name no account has."""
    if account == ANONYMOUS.account or not 0 < len(account) <= NAME_CHARACTERS:
        raise InvalidRequest(
            f"an account is named by 1 to {NAME_CHARACTERS} characters and not {ANONYMOUS.account!r}, which "
            "stands for all callers without a key: choose another name",
            pointers={"/account": "not a name for an account"},
        )
    tx.run(
        "add_key",
        account_id=Context(tx, Caller(account=account), now_ms).open_account(),
        key_id=key_id,
        key_sha256=key_sha256,
        plan=plan.value,
        label=label,
        now=now_ms,
    )


def list_keys(tx: Tx) -> Sequence[Any]:
    """Every key, oldest first: key_id, account, plan, label, created_at, revoked_at."""
    return tx.all("keys")


def revoke_key(tx: Tx, key_id: str, *, now_ms: int) -> None:
    """Make a key worthless; doing it again changes nothing. Raises `NotFound`."""
    if tx.run("revoke_key", key_id=key_id, now=now_ms) == 0:
        raise NotFound(f"there is no key {key_id}: runmemory keys list shows them all")
