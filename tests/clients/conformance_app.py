"""The fixtures of the MCP conformance suite behind our own `/mcp`: what is judged is the endpoint, not the tools.

Run by itself: ``python -m tests.clients.conformance_app PORT``. The names and texts are those the suite asks for.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import Server
from starlette.routing import Route, Router

from runmemory_core.service.mcp_endpoint import McpEndpoint
from runmemory_core.service.rest import Engine
from runmemory_core.service.settings import Settings
from runmemory_core.store import open_store

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(16)).decode()
SOUND = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(20)).decode()
STATE = "the state of round "


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def resource(uri: str, kind: str, words: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


CONTENT: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "test_tool_with_progress": [text("done")],
    "test_logging_tool": [text("logged nothing")],
    "test_streaming_elicitation": [text("asked nothing")],
}


def question(words: str, name: str, kind: str = "string") -> dict[str, Any]:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return {"method": "elicitation/create", "params": {"message": words, "requestedSchema": schema}}


def sample(words: str, tokens: int) -> dict[str, Any]:
    said = {"role": "user", "content": text(words)}
    return {"method": "sampling/createMessage", "params": {"messages": [said], "maxTokens": tokens}}


ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}
NAME = question("What is your name?", "name")
CONFIRM = question("Please confirm", "ok", "boolean")
QUESTIONS: dict[str, list[dict[str, Any]]] = {
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_sampling": [
        {"capital_question": sample("What is the capital of France?", 100)}
    ],
    "test_input_required_result_list_roots": [{"client_roots": ROOTS}],
    "test_input_required_result_request_state": [{"confirm": CONFIRM}],
    "test_input_required_result_multiple_inputs": [
        {"user_name": NAME, "greeting": sample("Generate a greeting", 50), "client_roots": ROOTS}
    ],
    "test_input_required_result_multi_round": [
        {"step1": question("Step 1: What is your name?", "name")},
        {"step2": question("Step 2: What is your favorite color?", "color")},
    ],
    "test_input_required_result_tampered_state": [{"confirm": CONFIRM}],
    "test_input_required_result_capabilities": [{"user_name": NAME, "capital": sample("A capital?", 10)}],
    "test_input_required_result_prompt": [
        {"user_context": question("What context should the prompt use?", "context")}
    ],
}
MISREAD = "test_misread"
"""No fixture of the suite's: its schema is one that some client misreads, and that the Inspector has to report."""
UNTYPED = {"type": "object", "properties": {"anything": {}}}
CAPABILITY = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


def ask_or(context: Any, params: Any, finish: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The next round of questions, or what ``finish`` makes of the answers."""
    rounds = QUESTIONS[params.name]
    state = params.request_state
    if state is not None and state not in {f"{STATE}{number}" for number in range(1, len(rounds) + 1)}:
        raise MCPError(types.INVALID_PARAMS, "requestState was not made here")
    answers = params.input_responses or {}
    number = int(state.removeprefix(STATE)) if state else int(bool(answers))  # a client may leave it out
    if number and answers.keys() >= rounds[number - 1].keys():
        if number == len(rounds):
            return finish()
    else:
        number = max(0, number - 1)
    able = (context.meta or {}).get("io.modelcontextprotocol/clientCapabilities") or {}
    asked = {k: q for k, q in rounds[number].items() if not able or CAPABILITY[q["method"]] in able}
    return {"resultType": "input_required", "inputRequests": asked, "requestState": f"{STATE}{number + 1}"}


async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
    if params.name == "test_error_handling":
        said = [text("This tool intentionally returns an error for testing")]
        return {"content": said, "isError": True, "resultType": "complete"}
    if params.name == "test_missing_capability":
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool needs sampling", data=needed)
    if params.name in QUESTIONS:
        answers = json.dumps(dump(params.input_responses))
        return ask_or(context, params, lambda: complete({"content": [text(f"state-ok {answers}")]}))
    if params.name not in CONTENT:
        raise MCPError(types.INVALID_PARAMS, "unknown tool")
    return complete({"content": CONTENT[params.name]})


def dump(answers: Any) -> Any:
    return {
        key: a if isinstance(a, dict) else a.model_dump(mode="json", by_alias=True)
        for key, a in (answers or {}).items()
    }


def complete(result: dict[str, Any]) -> dict[str, Any]:
    return result | {"resultType": "complete"}


RESOURCES: dict[str, dict[str, Any]] = {
    "test://static-text": {
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
    "test://watched-resource": {"mimeType": "text/plain", "text": "watched"},
    "test://template/123/data": {
        "mimeType": "application/json",
        "text": '{"id":"123","templateTest":true,"data":"Data for ID: 123"}',
    },
}
PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


async def list_tools(context: Any, params: Any) -> Any:
    empty = {"type": "object", "properties": {}}
    names = [
        *CONTENT,
        "test_error_handling",
        "test_missing_capability",
        *(name for name in QUESTIONS if not name.endswith("_prompt")),
    ]
    tools = [{"name": name, "description": "fixture", "inputSchema": empty} for name in names]
    tools.append({"name": MISREAD, "description": "fixture", "inputSchema": UNTYPED})
    return types.ListToolsResult.model_validate({"tools": tools})


async def list_resources(context: Any, params: Any) -> Any:
    listed = [
        {"uri": uri, "name": uri, "description": "fixture", "mimeType": held["mimeType"]}
        for uri, held in RESOURCES.items()
        if "template" not in uri
    ]
    return types.ListResourcesResult.model_validate({"resources": listed})


async def list_templates(context: Any, params: Any) -> Any:
    listed = [{"uriTemplate": "test://template/{id}/data", "name": "template", "description": "fixture"}]
    return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": listed})


async def read_resource(context: Any, params: Any) -> Any:
    if str(params.uri) not in RESOURCES:
        raise MCPError(types.INVALID_PARAMS, "there is no such resource", data={"uri": str(params.uri)})
    held = {"uri": str(params.uri), **RESOURCES[str(params.uri)]}
    return types.ReadResourceResult.model_validate({"contents": [held]})


async def list_prompts(context: Any, params: Any) -> Any:
    listed = [
        {
            "name": name,
            "description": "fixture",
            "arguments": [{"name": argument, "required": True} for argument in arguments],
        }
        for name, arguments in PROMPTS.items()
    ]
    return types.ListPromptsResult.model_validate({"prompts": listed})


async def get_prompt(context: Any, params: Any) -> Any:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            said = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            said = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            held = resource(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            said = [held, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            said = [IMAGE, text("Please analyze the image above.")]
        case _:
            words = {"messages": [{"role": "user", "content": text("with context")}]}
            return ask_or(context, params, lambda: complete(words))
    return complete({"messages": [{"role": "user", "content": content} for content in said]})


async def finish_argument(context: Any, params: Any) -> Any:
    return types.CompleteResult.model_validate({"completion": {"values": ["paris", "park"]}})


async def nothing(context: Any, params: Any) -> Any:
    return types.EmptyResult()


def fixtures() -> Server[Any]:
    hint = CacheHint(ttl_ms=0, scope="public")
    cacheable = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
    return Server(
        "fixtures",
        version="1",
        cache_hints=dict.fromkeys(cacheable, hint),  # pyright: ignore[reportArgumentType]
        get_tool_input_schema=lambda _: None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=finish_argument,
    )


def main(port: int) -> None:
    database = f"sqlite:///{Path(tempfile.mkdtemp()) / 'runs.db'}"
    endpoint = McpEndpoint(Engine(open_store(database), Settings(database=database)), server=fixtures())

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncGenerator[None]:
        del app
        async with endpoint.running():
            print("ready", flush=True)
            yield

    app = Router([Route("/mcp", endpoint)], lifespan=lifespan)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", http="httptools", loop="uvloop")


if __name__ == "__main__":
    main(int(sys.argv[1]))
