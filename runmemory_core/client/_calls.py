"""What both clients share: arguments become a checked call, a reply becomes its model. Pure."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any, TypeVar

from runmemory_core.model import LIMITS, Plan, Reply
from runmemory_core.operations import OPERATIONS
from runmemory_core.operations._fields import Shown
from runmemory_core.operations.calls import Call, prepare

ReplyModel = TypeVar("ReplyModel", bound=Shown)

_KEYED = frozenset(
    name for name, operation in OPERATIONS.items() if "idempotency_key" in operation.request.model_fields
)


def make_call(name: str, arguments: Mapping[str, Any], *, remote: bool, redacts: bool = True) -> Call:
    """The checked call; over a network a new idempotency key makes sending it again safe."""
    given = {argument: value for argument, value in arguments.items() if value is not None}
    if remote and name in _KEYED and "idempotency_key" not in given and not given.get("peek"):
        given["idempotency_key"] = _new_key()
    call = prepare(name, given, redacts=redacts)
    if call.state is not None:
        call.state.check_size(LIMITS[Plan.OWN])
    return call


def read_reply(model: type[ReplyModel], reply: Reply, call: Call) -> ReplyModel:
    """The reply as its model; fields of a newer service are left aside.

    What the client itself noticed of the call is added: a service sees only what was sent.
    """
    if call.notices:
        reply = reply | {"notices": list(dict.fromkeys((*call.notices, *reply.get("notices", ()))))}
    return model.model_validate(reply)


def _new_key() -> str:
    # Keys that begin with the time lie together in the database's index.
    return f"{time.time_ns() // 1_000_000:012x}-{secrets.token_urlsafe(15)}"
