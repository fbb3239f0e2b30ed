"""Who is asking: API keys and the addresses of callers without one, and issuing, listing and revoking keys.

A key itself never reaches this floor, only its SHA-256; how keys look is the service's business. Nor is an address
kept: only an HMAC of it, under a key that changes.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Any

from runmemory_core.engine._context import WATCHING, Context
from runmemory_core.errors import InvalidRequest, NotFound
from runmemory_core.model import LIMITS, Caller, Plan
from runmemory_core.policy import admission
from runmemory_core.policy.times import day_of
from runmemory_core.store import Tx

NAME_CHARACTERS = 200
ADDRESS_KEY_MS = LIMITS[Plan.WATCH].watched_for_ms
"""So long is one key of addresses used, and once more looked up."""

FREE_KEYS_A_DAY = 10
"""For each address of callers without a key."""

FREE = "free:"
"""What the name of the account of a free key begins with."""

_ANONYMOUS = "anonymous:"
_RESERVED = ("anonymous", FREE, WATCHING)
_DIGEST_BYTES = 16


def caller_of_key(tx: Tx, key_sha256: bytes) -> Caller | None:
    """Whom the key with this hash stands for; None when it is unknown or revoked."""
    row = tx.one("key_by_hash", key_sha256=key_sha256)
    if row is None or row["revoked_at"] is not None:
        return None
    plan = Plan(row["plan"])
    return Caller(account=row["account"], plan=plan, limits=LIMITS[plan])


def address_keys(tx: Tx, *, now_ms: int) -> tuple[bytes, ...]:
    """The key of addresses for this moment, made when missing, and the one before; older ones are destroyed."""
    period = now_ms // ADDRESS_KEY_MS
    tx.run("add_address_key", period=period)
    tx.run("forget_address_keys", since=period - 1)
    return tuple(bytes(row["body"]) for row in tx.all("address_keys", since=period - 1))


def caller_at_address(address: bytes, keys: Sequence[bytes]) -> Caller:
    """Everybody who calls from ``address`` without a key; ``keys`` are those of `address_keys`."""
    names = [_ANONYMOUS + hmac.digest(key, address, "sha256")[:_DIGEST_BYTES].hex() for key in keys]
    formerly = names[1] if len(names) > 1 else None
    limits = LIMITS[Plan.WATCH]
    return Caller(account=names[0], plan=Plan.WATCH, limits=limits, anonymous=True, formerly=formerly)


def issue_key(
    tx: Tx, key_sha256: bytes, *, key_id: str, account: str, plan: Plan, label: str, now_ms: int
) -> None:
    """Record a new key, and its account when missing; raises `InvalidRequest` for a name no account has.

    How long the account's runs are kept follows the most that one of its keys was ever issued for.
    """
    if account.startswith(_RESERVED) or not 0 < len(account) <= NAME_CHARACTERS:
        raise InvalidRequest(
            f"an account is named by 1 to {NAME_CHARACTERS} characters that begin with none of "
            f"{', '.join(_RESERVED)}: choose another name",
            pointers={"/account": "not a name for an account"},
        )
    _add_key(tx, key_sha256, key_id=key_id, account=account, plan=plan, label=label, now_ms=now_ms)


def issue_free_key(tx: Tx, key_sha256: bytes, *, key_id: str, caller: Caller, now_ms: int) -> None:
    """Record a key of the watch plan with an account of its own; raises `OverQuota` for too many from one address."""
    at = Context(tx, caller, now_ms, watching=True)
    # A day of its own name keeps these apart from the calls of that day.
    day = f"{day_of(now_ms)} keys"
    row = tx.one("usage", account_id=at.account_id, day=day)
    admission.check_quota(
        0 if row is None else row["calls"], FREE_KEYS_A_DAY, now_ms=now_ms, what="free keys"
    )
    tx.give("count_call", account_id=at.open_account(), day=day)
    _add_key(
        tx, key_sha256, key_id=key_id, account=FREE + key_id, plan=Plan.WATCH, label="free", now_ms=now_ms
    )


def _add_key(
    tx: Tx, key_sha256: bytes, *, key_id: str, account: str, plan: Plan, label: str, now_ms: int
) -> None:
    at = Context(tx, Caller(account=account, plan=plan), now_ms)
    account_id = at.open_account()
    if plan.rank > at.plan.rank:
        tx.run("set_plan", account_id=account_id, plan=plan.value)
    tx.run(
        "add_key",
        account_id=account_id,
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
