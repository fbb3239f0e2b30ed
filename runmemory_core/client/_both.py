"""Reads of what a service and a spool hold together, for the time in which what waits cannot be sent.

Of a checkpoint that both hold the spool's is the newer one. Belongs here: putting the two answers together. Does not
belong here: when that is called for (`spooling`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pydantic_core import from_json

from runmemory_core.client._calls import ReplyModel
from runmemory_core.errors import InvalidRequest
from runmemory_core.operations.storage import EntriesReply, Entry, FetchReply, TaskWrites

_CURSOR = "both:"
_START = ""
Texts = dict[str, str]


class Ask(Protocol):
    """Asks one of the two."""

    def __call__(self, model: type[ReplyModel], name: str, arguments: Mapping[str, Any]) -> ReplyModel: ...


class Both:
    """A service and a spool as one store; ``ahead`` gives the spool's writes for a checkpoint it does not hold."""

    def __init__(self, service: Ask, spool: Ask, ahead: Callable[[Entry], tuple[list[Any], Texts]]) -> None:
        self._service = service
        self._spool = spool
        self._ahead = ahead

    def fetch(self, asked: Mapping[str, Any]) -> FetchReply:
        """The newer of what the two hold, with the writes that wait for it."""
        theirs = self._service(FetchReply, "fetch", asked)
        ours = self._spool(FetchReply, "fetch", asked)
        if theirs.entry is None or (ours.entry is not None and ours.entry.key >= theirs.entry.key):
            return ours
        entry, texts = self._newest(theirs.entry)
        return FetchReply(entry=entry, parts=theirs.parts | texts)

    def chain(self, asked: Mapping[str, Any]) -> EntriesReply:
        """A checkpoint and its ancestors: the spool's, and from where these end the service's."""
        ours = self._spool(EntriesReply, "chain", asked)
        left = asked["limit"] - len(ours.entries)
        key = ours.entries[-1].parent if ours.entries else asked["key"]
        if key is None or not left:
            return ours
        theirs = self._service(EntriesReply, "chain", {**asked, "key": key, "limit": left})
        older = [self._newest(entry) for entry in theirs.entries]
        entries = [*ours.entries, *(entry for entry, _ in older)]
        return EntriesReply(
            entries=entries, parts=_together(ours.parts, theirs.parts, *(t for _, t in older))
        )

    def history(self, asked: Mapping[str, Any]) -> EntriesReply:
        """A page of checkpoints of both, newest first by key, each of them once."""
        limit, asks = asked["limit"], (self._service, self._spool)
        cursors = _cursors(asked.get("cursor"))
        pages = [_page(ask, asked, cursor, limit) for ask, cursor in zip(asks, cursors, strict=True)]
        taken, found = [0, 0], dict[tuple[str, str, str], Entry]()
        texts: list[Texts] = [page.parts for page in pages]
        while (side := _newer_side(pages, taken)) is not None:
            entry = pages[side].entries[taken[side]]
            place = (entry.run_id, entry.lane, entry.key)
            if place not in found:
                if len(found) == limit:
                    break
                found[place], more = self._newest(entry) if side == 0 else (entry, {})
                texts.append(more)
            taken[side] += 1
        after = [
            _after(ask, asked, cursor, page, count)
            for ask, cursor, page, count in zip(asks, cursors, pages, taken, strict=True)
        ]
        cursor = None if after == [None, None] else _CURSOR + json.dumps(after)
        return EntriesReply(entries=list(found.values()), parts=_together(*texts), cursor=cursor)

    def _newest(self, entry: Entry) -> tuple[Entry, Texts]:
        """An entry of the service as it is with what waits, and the texts that this needs beside its own."""
        place = {"run_id": entry.run_id, "lane": entry.lane, "key": entry.key}
        ours = self._spool(FetchReply, "fetch", place)
        if ours.entry is not None:
            return ours.entry, ours.parts
        ahead, texts = self._ahead(entry)
        waiting = [each for each in map(TaskWrites.model_validate, ahead) if each not in entry.writes]
        return entry.model_copy(update={"writes": [*entry.writes, *waiting]}), texts


def _page(ask: Ask, asked: Mapping[str, Any], cursor: str | None, limit: int) -> EntriesReply:
    """The next page of one of the two; ``cursor`` is None where it has no more."""
    if cursor is None:
        return EntriesReply(entries=[])
    return ask(EntriesReply, "history", {**asked, "cursor": cursor or None, "limit": limit})


def _newer_side(pages: list[EntriesReply], taken: list[int]) -> int | None:
    """Which of the two has the greater key next; None when neither has one."""
    left = [
        (page.entries[count].key, -side)
        for side, (page, count) in enumerate(zip(pages, taken, strict=True))
        if count < len(page.entries)
    ]
    return -max(left)[1] if left else None


def _after(
    ask: Ask, asked: Mapping[str, Any], cursor: str | None, page: EntriesReply, count: int
) -> str | None:
    """The cursor behind the first ``count`` entries of a page."""
    if count == len(page.entries):
        return page.cursor
    return cursor if count == 0 else _page(ask, asked, cursor, count).cursor


def _cursors(cursor: str | None) -> list[str | None]:
    if cursor is None:
        return [_START, _START]
    if not cursor.startswith(_CURSOR):
        raise InvalidRequest(
            "the calls of the day were used up while this list was read: read it again from the beginning",
            pointers={"/cursor": "began when nothing waited on this machine"},
        )
    return from_json(cursor.removeprefix(_CURSOR))


def _together(*texts: Texts) -> Texts:
    return {address: text for each in texts for address, text in each.items()}
