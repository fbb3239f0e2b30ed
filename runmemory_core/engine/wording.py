"""The sentences of the five tools: one line each that an agent can repeat to its user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from runmemory_core.model import KIB, MIB, RunStatus
from runmemory_core.policy.pointers import Pointers
from runmemory_core.policy.times import duration

_KEYS_SHOWN = 5
_KEY_CHARACTERS = 40
_ERROR_CHARACTERS = 200
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
"""Controls, line ends, and marks that turn the direction of a line; not the joiner inside an emoji."""


def one_line(text: str) -> str:
    """``text`` without what would break a line or a terminal: names may hold any character."""
    return text if text.isprintable() else _UNSEEN.sub(" ", text)


def size(count_bytes: int) -> str:
    """Bytes for people: ``41 B``, ``12.4 KB``, ``1.5 MB``."""
    if count_bytes < KIB:
        return f"{count_bytes} B"
    if count_bytes < MIB:
        return f"{count_bytes / KIB:.1f} KB"
    return f"{count_bytes / MIB:.1f} MB"


def _keys(keys: Sequence[str]) -> str:
    if not keys:
        return ""
    more = f", +{len(keys) - _KEYS_SHOWN} more" if len(keys) > _KEYS_SHOWN else ""
    names = (
        key if len(key) <= _KEY_CHARACTERS else f"{key[:_KEY_CHARACTERS]}…" for key in keys[:_KEYS_SHOWN]
    )
    return f" ({', '.join(names)}{more})"


_NOW: dict[RunStatus, str] = {
    "running": "A crash now resumes right here.",
    "paused": "The run is paused; it resumes right here.",
    "failed": "The attempt failed; the next one resumes right here.",
    "finished": "The run is finished.",
}


def saved(
    seq: int, state_bytes: int, step: str, keys: Sequence[str], *, status: RunStatus = "running"
) -> str:
    """What a committed save reports."""
    return f'Saved checkpoint {seq} ({size(state_bytes)}) after "{step}"{_keys(keys)}. {_NOW[status]}'


def would_save(state_bytes: int, step: str, keys: Sequence[str]) -> str:
    """What a preview reports."""
    return (
        f'Watch-only: would save {size(state_bytes)} after "{step}"{_keys(keys)}. '
        "Nothing stored; with Pro a crash would resume right here."
    )


def would_refuse(step: str, refusal: str) -> str:
    """What a preview reports of a save that an acting plan would refuse."""
    return f'Watch-only: nothing stored, and with Pro "{step}" would not be saved: {refusal}'


def would_resume(run_id: str, crash_point: Mapping[str, object] | None) -> str:
    """What a resume reports in watch mode."""
    begin = f"Watch-only: nothing is stored for {run_id}, so start from the beginning."
    if crash_point is None:
        return begin
    if crash_point["run_status"] == "finished":
        return f'{begin} With Pro it would be finished after "{crash_point["step"]}".'
    return f'{begin} With Pro it would resume after "{crash_point["step"]}".'


def resuming(run_id: str, step: str, done_count: int, worked_ms: int, left: Mapping[str, object]) -> str:
    """What a resume that found a checkpoint reports; the time is the first attempts' own gaps.

    ``left`` holds the ``run_status`` and ``error`` that the run was left with, unless it just fell silent.
    """
    ended = ""
    if left.get("run_status") == "paused":
        ended = " It was paused: it waits for a person."
    elif left.get("run_status") == "failed":
        error = str(left.get("error", ""))
        more = "…" if len(error) > _ERROR_CHARACTERS else ""
        ended = f" It had failed{error and ': '}{error[:_ERROR_CHARACTERS]}{more}"
        ended += "" if ended.endswith((".", "…")) else "."
    return (
        f'Resuming {run_id} after "{step}": {done_count:,} done, '
        f"{duration(worked_ms)} not repeated (estimate).{ended}"
    )


def beginning(run_id: str, *, earlier: int, gone: str = "") -> str:
    """What a resume reports that found nothing to go on from.

    ``earlier`` is the last seq of earlier generations; ``gone`` says what became of all that the run had.
    """
    if gone:
        return f"Run {run_id} {gone}: nothing of it is kept. Start from the beginning."
    if not earlier:
        return f"No checkpoint for {run_id} yet: start from the beginning."
    return (
        f"{run_id} begins anew: state and done are cleared, checkpoints up to {earlier} are of before. "
        "Start from the beginning."
    )


def removed(pointers: Pointers) -> dict[str, object]:
    """The removed places as replies show them."""
    return {"removed": list(pointers.shown), "removed_count": pointers.total} if pointers.total else {}
