"""`POST /api/keys/free`: a key of the watch plan at once, without e-mail, for lists and reports with labels."""

from __future__ import annotations

from functools import partial

from starlette.types import Receive, Scope, Send

from runmemory_core.engine.keys import issue_free_key
from runmemory_core.model import Plan
from runmemory_core.operations.wire import write
from runmemory_core.service.answers import JSON, answer
from runmemory_core.service.heads import headers_of
from runmemory_core.service.keys import digest, id_of, new_key
from runmemory_core.service.rest import Engine

FREE_KEY_PATH = "/api/keys/free"
_CREATED = 201


class FreeKeyEndpoint:
    """Makes a key and shows it once; a few a day for each address."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        caller = await self._engine.authenticator.anonymous(scope, headers_of(scope))
        key = new_key()
        record = partial(
            issue_free_key,
            key_sha256=digest(key),
            key_id=id_of(key),
            caller=caller,
            now_ms=self._engine.clock_ms(),
        )
        await self._engine.write(record)
        made = {"key": key, "key_id": id_of(key), "plan": Plan.WATCH.value}
        headers = [JSON, (b"cache-control", b"no-store")]
        await answer(send, write(made).encode(), status=_CREATED, headers=headers)
