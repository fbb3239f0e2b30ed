"""Each rule of admission by itself: what passes, what is refused, and the words and facts of the refusal."""

from __future__ import annotations

import pytest

from runmemory_core import (
    AdapterRun,
    IdempotencyKeyReused,
    OverQuota,
    RunDeleted,
    RunFinished,
    SeqConflict,
    StaleAttempt,
)
from runmemory_core.model import DAY_MS, LIMITS, Limits, Plan
from runmemory_core.policy import admission
from runmemory_core.policy.retention import evicted_through, expires_at

NOON = 1_772_366_400_000


def test_a_replay_needs_the_same_body() -> None:
    admission.check_replay(b"same", b"same")
    with pytest.raises(IdempotencyKeyReused, match="make a new key for each new call") as refusal:
        admission.check_replay(b"first", b"other")
    assert list(refusal.value.pointers) == ["/idempotency_key"]


def test_a_tombstone_refuses_what_does_not_begin_anew() -> None:
    admission.check_tombstone("import", None, begins_anew=False)
    admission.check_tombstone("import", NOON, begins_anew=True)
    with pytest.raises(RunDeleted, match=r"run import was deleted at 2026-03-01T12:00:00\.000Z"):
        admission.check_tombstone("import", NOON, begins_anew=False)


def test_a_run_has_one_kind_of_writer() -> None:
    admission.check_owner("import", None, None)
    admission.check_owner("import", "langgraph", "langgraph")
    refusals = {
        ("langgraph", None): "the langgraph adapter",
        (None, "crew"): "the five tools",
        ("a", "b"): "the a adapter",
    }
    for (owner, writer), words in refusals.items():
        with pytest.raises(AdapterRun, match=f"run import is written by {words}: use another run_id here"):
            admission.check_owner("import", owner, writer)


def test_only_finished_refuses_a_save() -> None:
    for status in ("running", "paused", "failed"):
        admission.check_finished("import", status)
    with pytest.raises(RunFinished, match="resume with start_over=true"):
        admission.check_finished("import", "finished")


def test_only_the_current_attempt_passes() -> None:
    admission.check_attempt("import", None, current=2, resumed_at=NOON)
    admission.check_attempt("import", 2, current=2, resumed_at=NOON)
    with pytest.raises(StaleAttempt) as refusal:
        admission.check_attempt("import", 1, current=2, resumed_at=NOON + 180_000)
    assert refusal.value.detail == (
        "another worker resumed this run at 12:03; stop: import is at attempt 2, this is 1"
    )
    assert refusal.value.facts == {"attempt": 1, "current_attempt": 2}
    with pytest.raises(StaleAttempt, match=r"^another worker resumed this run; stop"):
        admission.check_attempt("import", 1, current=2, resumed_at=None)
    with pytest.raises(
        StaleAttempt, match="attempt 3 of run import does not exist yet; the current one is 2"
    ):
        admission.check_attempt("import", 3, current=2, resumed_at=NOON)


def test_the_expected_seq_must_be_the_current_one() -> None:
    admission.check_expected_seq("import", None, current=2)
    admission.check_expected_seq("import", 2, current=2)
    for expected in (0, 1, 3):
        with pytest.raises(SeqConflict, match=f"run import is at seq 2, not {expected}") as refusal:
            admission.check_expected_seq("import", expected, current=2)
        assert refusal.value.facts == {"expected_seq": expected, "current_seq": 2}


def test_the_quota_refuses_the_call_after_the_last() -> None:
    admission.check_quota(10**9, None, now_ms=NOON)
    admission.check_quota(499, 500, now_ms=NOON)
    for used in (500, 501):
        with pytest.raises(
            OverQuota, match=r"all 500 calls of this UTC day are used; nothing was saved"
        ) as refusal:
            admission.check_quota(used, 500, now_ms=NOON + 1)
        assert refusal.value.facts == {
            "limit": 500,
            "reset_at": "2026-03-02T00:00:00.000Z",
            "retry_after": 12 * 3_600,
            "saved": False,
        }


@pytest.mark.parametrize(
    ("seq", "keep", "through"), [(1, None, 0), (10**6, None, 0), (1, 3, 0), (3, 3, 0), (4, 3, 1), (10, 1, 9)]
)
def test_the_newest_so_many_are_kept(seq: int, keep: int | None, through: int) -> None:
    assert evicted_through(seq, keep) == through


def test_a_run_expires_so_long_after_its_last_activity() -> None:
    assert expires_at(NOON, Limits()) is None
    assert expires_at(NOON, LIMITS[Plan.PRO]) == NOON + 30 * DAY_MS
