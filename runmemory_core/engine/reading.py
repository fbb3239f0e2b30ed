"""The whole text of a state, for those that are too large to stand in the reply to `resume`."""

from __future__ import annotations

from runmemory_core.engine._context import Context
from runmemory_core.engine._states import state_text
from runmemory_core.engine.resuming import find_checkpoint
from runmemory_core.errors import NotFound
from runmemory_core.model import Caller
from runmemory_core.operations.tools import Resume
from runmemory_core.store import Tx


def read_state(tx: Tx, request: Resume, *, caller: Caller, now_ms: int) -> tuple[int, str]:
    """The seq and the JSON text of the state ``request`` asks for; raises `NotFound`, `CheckpointGone`."""
    at = Context(tx, caller, now_ms)
    run = at.run(request.run_id)
    living = run is not None and run["deleted_at"] is None
    checkpoint = find_checkpoint(at, request, run) if living else None
    if checkpoint is None:
        raise NotFound(f"there is no checkpoint of run {request.run_id} in this account")
    return checkpoint["seq"], state_text(at, checkpoint)
