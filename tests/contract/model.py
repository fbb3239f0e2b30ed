"""A model of an account with tiny limits in plain Python, to which every face is compared.

It says again, in the simplest words, what the engine does: no code of the engine is used but its errors and numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from runmemory_core import (
    IdempotencyKeyReused,
    NotFound,
    OverQuota,
    RunDeleted,
    RunFinished,
    SeqConflict,
    StaleAttempt,
    StateTooLarge,
)
from runmemory_core.model import Limits
from tests.contract.faces import DAY

LIMITS = Limits(calls_a_day=5, keep=3, kept_for_ms=30 * DAY, state_bytes=1_024)
KEEP, CALLS, STATE_BYTES = 3, 5, 1_024

Outcome = type[Exception] | tuple[Any, ...]
"""The refusal, or what the reply has to hold."""


@dataclass
class ModelRun:
    attempt: int = 1
    status: str = "running"
    seq: int = 0
    generation_seq: int = 0
    checkpoints: dict[int, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    last: tuple[Any, ...] | None = None
    updated_at: int = 0
    deleted_at: int | None = None
    generation: int = 1

    def look(self) -> tuple[Any, ...]:
        """Status, attempt, seq, step, state and done as a peek shows them."""
        if self.seq <= self.generation_seq:
            return "new", self.attempt, None, None, None, []
        status = "finished" if self.status == "finished" else "resumed"
        return status, self.attempt, self.seq, *self.checkpoints[self.seq], self.done


NOTHING = ("new", None, None, None, None, [])


class Model:
    """The account; each method gives the outcome it expects and moves on accordingly."""

    def __init__(self) -> None:
        self.now = 0
        self.runs: dict[str, ModelRun] = {}
        self.calls: dict[int, int] = {}
        self.answers: dict[str, tuple[tuple[Any, ...], Any, int, ModelRun, int]] = {}
        self.graph: dict[str, int] = {}
        self.graph_seq = 0

    @property
    def used(self) -> int:
        return self.calls.get(self.now // DAY, 0)

    @property
    def over_quota(self) -> bool:
        return self.used >= CALLS

    def count(self) -> None:
        if not self.over_quota:
            self.calls[self.now // DAY] = self.used + 1

    def known(self, run_id: str) -> ModelRun | None:
        """The run, also one deleted within the last 7 days."""
        run = self.runs.get(run_id)
        if run is not None and run.deleted_at is not None and run.deleted_at < self.now - 7 * DAY:
            del self.runs[run_id]
            return None
        return run

    def living(self, run_id: str) -> ModelRun | None:
        run = self.known(run_id)
        return None if run is None or run.deleted_at is not None else run

    def replay(self, key: str | None, body: tuple[Any, ...]) -> Outcome | None:
        if key is None or key not in self.answers:
            return None
        recorded, answer, answered_at, _, _ = self.answers[key]
        if answered_at < self.now - 7 * DAY:
            return None
        return ("replayed", answer) if recorded == body else IdempotencyKeyReused

    def saved_again(self, key: str | None, run_id: str, replayed: Outcome) -> Outcome:
        """A repeated save is answered again unless its checkpoint went with the run or its generation."""
        if not isinstance(replayed, tuple) or key is None:
            return replayed
        _, seq, _, then, generation = self.answers[key]
        run = self.runs[run_id]
        if run is not then:
            return RunDeleted if run.deleted_at is not None else StaleAttempt
        gone = run.generation != generation and seq not in run.checkpoints
        return StaleAttempt if gone else replayed

    def remember(self, key: str | None, body: tuple[Any, ...], answer: Any, run_id: str) -> None:
        if key is not None:
            self.answers[key] = (body, answer, self.now, self.runs[run_id], self.runs[run_id].generation)

    def look(self, run_id: str) -> tuple[Any, ...]:
        run = self.living(run_id)
        return NOTHING if run is None else run.look()

    # --- the tools ----------------------------------------------------------------------------------------

    def save(self, run_id: str, arguments: dict[str, Any], key: str | None) -> Outcome:
        run = self.known(run_id)
        body = ("save", run_id, repr(sorted(arguments.items())))
        if (replayed := self.replay(key, body)) is not None:
            return self.saved_again(key, run_id, replayed)
        attempt = arguments.get("attempt")
        if run is not None and run.last == body and attempt in (None, run.attempt):
            self.remember(key, body, run.seq, run_id)
            return ("replayed", run.seq)
        if (refusal := self._refusal(run, arguments)) is not None:
            return refusal
        if run is None:
            run = self.runs[run_id] = ModelRun(attempt=attempt or 1)
        previous = run.checkpoints[run.seq][1] if run.seq > run.generation_seq else {}
        run.seq += 1
        run.checkpoints[run.seq] = (arguments["step"], arguments.get("state", previous))
        run.checkpoints.pop(run.seq - KEEP, None)
        run.done += [item for item in dict.fromkeys(arguments.get("done", ())) if item not in run.done]
        run.status = arguments.get("status", "running")
        run.last, run.updated_at = body, self.now
        self.remember(key, body, run.seq, run_id)
        self.count()
        return ("saved", run.seq)

    def _refusal(self, run: ModelRun | None, arguments: dict[str, Any]) -> type[Exception] | None:
        seq = 0
        if run is not None:
            seq = run.seq
            if run.deleted_at is not None:
                return RunDeleted
            if arguments.get("attempt", run.attempt) != run.attempt:
                return StaleAttempt
            if run.status == "finished":
                return RunFinished
        if arguments.get("expected_seq", seq) != seq:
            return SeqConflict
        if len(json.dumps(arguments.get("state", {}), separators=(",", ":"))) > STATE_BYTES:
            return StateTooLarge
        return OverQuota if self.over_quota else None

    def resume(self, run_id: str, key: str | None, *, start_over: bool) -> Outcome:
        body = ("resume", run_id, start_over)
        if (replayed := self.replay(key, body)) is not None:
            if not isinstance(replayed, tuple):
                return replayed
            look = self.look(run_id)
            return (look[0], replayed[1], *look[2:])
        run = self.known(run_id)
        if run is None or run.deleted_at is not None:
            if self.over_quota:
                return NOTHING
            run = self.runs[run_id] = ModelRun(attempt=1 if run is None else run.attempt + 1)
            run.updated_at = self.now
        elif start_over and self.over_quota:
            return OverQuota
        elif start_over or run.status != "finished":
            run.attempt += 1
            run.status, run.last, run.updated_at = "running", None, self.now
            if start_over:
                run.generation_seq, run.done, run.generation = run.seq, [], run.generation + 1
        self.count()
        self.remember(key, body, run.attempt, run_id)
        return run.look()

    def listed(self, run_id: str) -> Outcome:
        run = self.living(run_id)
        return NotFound if run is None else tuple(sorted(run.checkpoints, reverse=True))

    def delete(self, run_id: str) -> int:
        run = self.living(run_id)
        if run is None:
            return 0
        self.runs[run_id] = ModelRun(attempt=run.attempt, deleted_at=self.now)
        return 1

    def sweep(self) -> None:
        for run_id, run in list(self.runs.items()):
            silent = self.now - run.updated_at
            if run.deleted_at is not None:
                gone = self.now - run.deleted_at > 7 * DAY
            elif run.status == "paused" and silent > 30 * DAY:
                run.checkpoints = {run.seq: run.checkpoints[run.seq]}
                gone = silent > 365 * DAY
            else:
                gone = silent > 30 * DAY
            if gone and run.deleted_at is None:
                # What expired stays known as long as what was deleted, so that nothing starts empty unnoticed.
                self.runs[run_id] = ModelRun(attempt=run.attempt, deleted_at=self.now)
            elif gone:
                del self.runs[run_id]

    # --- an adapter's run, swept never: its commits are the newest that happened ----------------------------

    def commit(self, key: str) -> Outcome:
        if self.over_quota:
            return OverQuota
        self.graph_seq += 1
        self.graph[key] = self.graph_seq
        for old in sorted(self.graph)[:-KEEP]:
            del self.graph[old]
        self.count()
        return ("committed", self.graph_seq)
