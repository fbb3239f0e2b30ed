"""The five tools as agents are shown them, and the words that teach an agent to use them well.

MCP, the catalogue files and other tool formats are made from this. Pure: what a service is called, and how
its tools are reached, is not known here.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast
from urllib.parse import quote

from runmemory_core.operations import TOOLS, Operation

RESULT_CHARACTERS = 500_000
"""A state of 256 KB and what stands beside it, twice escaped at worst."""

LONG_STATE_BYTES = 16_384
"""From this size on a client may cut a result, so the reader is told where the whole state can be read."""

QUOTA_WARNING = 0.8

PROBLEM_META = "runmemory/problem"
"""Beside the words of a refusal over MCP, for programs: its RFC 9457 form. Models are not shown it."""

_TITLES = {
    "resume": "Resume a run",
    "save_checkpoint": "Save a checkpoint",
    "list_checkpoints": "List checkpoints",
    "weekly_report": "Weekly report",
    "usage_and_upgrade": "Usage and upgrade",
}
_ALWAYS_LOADED = frozenset({"resume", "save_checkpoint"})
_BULKY = (
    "hints",
    "notices",
    "unfinished",
    "done",
    "text",
    "numbers",
    "checkpoints",
    "would_save",
    "checkpoint",
)
"""What goes to the end of a result, the bulkiest last: a client that cuts it keeps the rest."""

INSTRUCTIONS = """\
Run Memory keeps checkpoints of long work, so that after a crash the work goes on instead of starting over.

FIRST, before work of several steps: call resume with a run_id, a stable name of this work that you would \
choose again after a crash ("invoice-import-2026-03", not a random id or the time).
- status new: start from the beginning. If unfinished shows this work under another name, resume that one.
- status resumed: go on after checkpoint.step with checkpoint.state, and skip what is in done \
(a long one comes in parts: hints say how to get the rest). The outcome of steps in in_flight is unknown: \
check before you repeat them.
- status finished: do nothing again, tell the user. start_over=true only if the user wants it all anew.

AFTER EACH completed step: call save_checkpoint with run_id, the attempt that resume returned, a short step \
label, done (the ids just finished) and state (what you need to continue: cursors, ids, page numbers, file \
paths, decisions). state replaces the previous state; left out, it stays. Keep large results in files and save \
where they are. Give next_step before a step with outside effects (payment, e-mail, deployment).
- status=finished with the last step, paused while you wait for a person, failed with error when you give up.

NEVER put passwords, API keys or tokens in any argument.

AFTER A COMPACTION of your context, or when unsure where you are: resume with peek=true, which only looks.

TELL THE USER the outcome line in your words. mode "watch" means that nothing was stored: say so, and never \
call it saved. hints name what needs attention now. An error says what to change: change it and call again. If \
it says that another worker resumed the run, stop that work. If Run Memory cannot be reached, go on, say that \
steps are not being saved, and save at the next step.
"""


def input_schema(operation: Operation) -> dict[str, Any]:
    """The JSON Schema of the arguments that agents are shown: one type each, no titles, no defaults."""
    schema = operation.request.model_json_schema()
    properties: dict[str, Any] = schema.get("properties", {})
    shown = {
        name: {key: value for key, value in argument.items() if key not in {"title", "default"}}
        for name, argument in properties.items()
        if name not in operation.hidden
    }
    made: dict[str, Any] = {"type": "object", "properties": shown}
    if "required" in schema:
        made["required"] = schema["required"]
    return made | {"additionalProperties": False}


@cache
def tools() -> tuple[dict[str, Any], ...]:
    """Each tool in the form MCP lists it; do not change what is returned."""
    return tuple(_tool(operation) for operation in TOOLS)


def _tool(operation: Operation) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": operation.name,
        "title": _TITLES[operation.name],
        "description": operation.description,
        "inputSchema": input_schema(operation),
        "annotations": {
            "title": _TITLES[operation.name],
            "readOnlyHint": not operation.writes,
            # Nothing that was saved is lost by a call, and no call leaves Run Memory: without these two an
            # unattended client asks a person, or refuses.
            "destructiveHint": False,
            "openWorldHint": False,
            # A resume begins an attempt each time.
            "idempotentHint": operation.name != "resume",
        },
    }
    meta: dict[str, Any] = {}
    if operation.name in _ALWAYS_LOADED:
        meta["anthropic/alwaysLoad"] = True
    if operation.name == "resume":
        meta["anthropic/maxResultSizeChars"] = RESULT_CHARACTERS
    return made | ({"_meta": meta} if meta else {})


def for_agents(reply: Mapping[str, Any], *, where: str | None, database: str | None = None) -> dict[str, Any]:
    """The reply with hints where action is needed, small fields first and the state last.

    ``where`` is the address of the service, for reading a long state in parts; without one the command line reads
    it in ``database``.
    """
    found = [*_hints(reply), *_long_state(reply, where, database)]
    shown = {name: value for name, value in reply.items() if name not in _BULKY}
    shown |= {"hints": found} if found else {}
    return shown | {name: reply[name] for name in _BULKY if name in reply}


def _hints(reply: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    usage: Mapping[str, Any] = reply.get("usage") or {}
    limit = usage.get("limit")
    if limit and usage["used"] >= limit * QUOTA_WARNING:
        found.append(
            f"{usage['used']:,} of {limit:,} calls of today are used; more at {usage['reset_at']}: "
            "usage_and_upgrade tells how to get more now"
        )
    if reply.get("unfenced"):
        found.append(
            f"the save named no attempt, so an older worker cannot be told from this one: send attempt="
            f"{reply['attempt']} with each save"
        )
    parts = (reply, reply.get("would_save"), reply.get("checkpoint"))
    found += [_removed(part) for part in parts if part and part.get("removed")]
    if reply.get("in_flight"):
        found.append("the outcome of the steps in in_flight is unknown: check before you repeat them")
    if (cursor := reply.get("done_cursor")) is not None:
        found.append(
            f"done goes up to id {cursor:,} of {reply['done_count']:,}: before you skip by it, call resume with "
            f"the same run_id, peek=true and done_cursor={cursor} for the next ones"
        )
    if stuck := reply.get("stuck"):
        found.append(_stuck(stuck))
    return found


def _removed(part: Mapping[str, Any]) -> str:
    places = ", ".join(cast("Sequence[str]", part["removed"])[:5])
    return (
        f"{part['removed_count']} values looked like secrets and are [removed] ({places}): fetch them anew "
        "where they are kept, and leave them out of states"
    )


def _stuck(stuck: Mapping[str, Any]) -> str:
    before = stuck.get("fall_back_seq")
    way_out = "ask the user" if before is None else f"or go back with resume seq={before}, or ask the user"
    return (
        f"{stuck['attempts']} attempts began at checkpoint {stuck['from_seq']} and saved nothing: do not "
        f"simply repeat the step; try another way, {way_out}"
    )


def _long_state(reply: Mapping[str, Any], where: str | None, database: str | None) -> list[str]:
    checkpoint: Mapping[str, Any] = reply.get("checkpoint") or {}
    size = checkpoint.get("bytes", 0)
    if size < LONG_STATE_BYTES:
        return []
    left_out = "" if "state" in checkpoint else " and is left out here"
    if where is None:
        way = f"{_show_command(reply['run_id'], database)} prints it"
    else:
        path = f"/api/run/{quote(reply['run_id'], safe='')}/state?seq={checkpoint['seq']}"
        way = (
            f"GET {where}{path}&offset=0&length=10000 reads it in parts, with the header "
            "Authorization: Bearer <your key>"
        )
    return [f"the state has {size:,} bytes{left_out}; if it is cut off below, {way}"]


def _show_command(run_id: str, database: str | None) -> str:
    """A line for a shell, whatever a run is called."""
    run = shlex.quote(run_id)
    options = "--json" if database is None else f"--json --database {shlex.quote(database)}"
    return (
        f"runmemory show {options} -- {run}" if run_id.startswith("-") else f"runmemory show {run} {options}"
    )
