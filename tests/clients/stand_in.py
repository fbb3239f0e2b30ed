"""A stand-in on loopback for the model behind Claude Code and Codex: it plays a script and keeps what it was sent.

Both ask over HTTP for a streamed answer. Each answer here is the next line of the script: a tool call, words,
or silence until the client is killed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

SILENCE = "silence"
"""A line of a script: no answer comes, as if the model were thinking when the process dies."""

_numbers = count(1)
"""Two messages or calls with one id are one and the same for a client."""

Line = str | tuple[str, dict[str, Any]]
"""Words, or the name of a tool and its arguments."""


@dataclass
class StandIn:
    """The model: line n of ``script`` answers a conversation that has n tool results.

    ``asked`` keeps every request that had tools to offer.
    """

    url: str = ""
    script: list[Line] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    silent: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def play(self, script: Sequence[Line]) -> None:
        """Begin a script; a client that asks again gets the same line again."""
        self.script = list(script)
        self.asked.clear()
        self.silent.clear()

    def next_line(self, request: dict[str, Any]) -> Line:
        if not request.get("tools"):
            return "ok"  # a title, a check of the quota: not the work
        self.asked.append(request)
        return self.script[min(len(results_in(request)), len(self.script) - 1)]


def results_in(request: dict[str, Any]) -> list[str]:
    """What the model is shown of each tool result, oldest first, whichever API carries it."""
    blocks = [block for message in request.get("messages", ()) for block in message["content"]]
    found = [block["content"] for block in blocks if _kind(block) == "tool_result"]
    found += [item["output"] for item in request.get("input", ()) if _kind(item) == "function_call_output"]
    whole = [text if isinstance(text, str) else "".join(p.get("text", "") for p in text) for text in found]
    return [text.partition("Output:\n")[2] or text for text in whole]  # Codex says first how long it took


def _kind(block: Any) -> str:
    return block.get("type", "") if isinstance(block, dict) else ""


def tool_named(request: dict[str, Any], name: str) -> dict[str, Any]:
    """How a client offers a tool of ours: its own name for it, and the namespace it stands in, if any."""
    for tool in request["tools"]:
        if tool.get("type") == "namespace":
            for inner in tool["tools"]:
                if inner["name"] == name:
                    return {"name": name, "namespace": tool["name"]}
        elif tool.get("name", "").endswith(f"__{name}"):
            return {"name": tool["name"]}
    offered = [tool.get("name", tool.get("type")) for tool in request["tools"]]
    raise LookupError(f"{name} is not among the tools: {offered}")


def claude_events(request: dict[str, Any], line: Line) -> Iterable[tuple[str, dict[str, Any]]]:
    """The stream of the Messages API for one line."""
    yield (
        "message_start",
        {
            "message": {
                "id": f"msg_{next(_numbers)}",
                "type": "message",
                "role": "assistant",
                "model": request["model"],
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        },
    )
    if isinstance(line, str):
        yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
        yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": line}}
    else:
        name, arguments = line
        block = {"type": "tool_use", "id": f"toolu_{next(_numbers)}", "input": {}}
        block["name"] = tool_named(request, name)["name"]
        yield "content_block_start", {"index": 0, "content_block": block}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    reason = "end_turn" if isinstance(line, str) else "tool_use"
    yield "message_delta", {"delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}
    yield "message_stop", {}


def codex_events(request: dict[str, Any], line: Line) -> Iterable[tuple[str, dict[str, Any]]]:
    """The stream of the Responses API for one line."""
    yield "response.created", {"response": {"id": "resp_1"}}
    item: dict[str, Any]
    if isinstance(line, str):
        content = [{"type": "output_text", "text": line}]
        item = {"type": "message", "role": "assistant", "id": f"msg_{next(_numbers)}", "content": content}
    else:
        name, arguments = line
        called = tool_named(request, name)
        item = {"type": "function_call", "call_id": f"call_{next(_numbers)}", **called}
        item["arguments"] = json.dumps(arguments)
    yield "response.output_item.done", {"item": item}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    yield "response.completed", {"response": {"id": "resp_1", "usage": usage}}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(b'{"data": [], "models": []}', "application/json")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        request = json.loads(body)
        if "/messages" in self.path and "count_tokens" not in self.path:
            self._play(request, claude_events)
        elif self.path.endswith("/responses"):
            self._play(request, codex_events)
        else:
            self._answer(b'{"input_tokens": 1}', "application/json")

    def _play(self, request: dict[str, Any], events: Any) -> None:
        assert isinstance(self.server, _Server)
        stand_in = self.server.stand_in
        line = stand_in.next_line(request)
        if line == SILENCE:
            stand_in.silent.set()
            stand_in.released.wait()
            self.close_connection = True
            return
        stream = "".join(
            f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"
            for kind, data in events(request, line)
        )
        self._answer(stream.encode(), "text/event-stream")

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        del format, args


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    stand_in: StandIn


@contextmanager
def standing_in() -> Generator[StandIn]:
    """A stand-in that answers until the block ends."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.stand_in = StandIn(url=f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.stand_in
        finally:
            server.stand_in.released.set()
            server.shutdown()
            thread.join()
