"""How /mcp bears with clients as they are: odd headers, other methods, wrong keys, no OAuth, no redirect."""

from __future__ import annotations

import http.client
import json

import pytest

from runmemory_core.errors import WrongOrigin
from runmemory_core.model import MIB
from runmemory_core.service import mcp_origins
from runmemory_core.service.settings import Settings, from_environment
from tests.service.messages import HANDSHAKE, MODERN, REVISIONS, headers_for, message, post
from tests.service.serving import Answer, Service, answer_of

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
OLD = HANDSHAKE[0]


def error_of(answer: Answer) -> dict[str, object]:
    """The error of an answer, which has to be JSON-RPC with CORS."""
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.json["jsonrpc"] == "2.0"
    return answer.json["error"]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_a_trailing_slash_is_no_other_place_and_no_redirect(
    service: Service, revision: str, path: str
) -> None:
    sent = message("tools/list", revision=revision)
    answer = service.ask("POST", path, sent, headers=headers_for(sent, revision=revision))
    assert answer.status == 200
    assert len(answer.json["result"]["tools"]) == 5


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_other_methods_end_at_once(service: Service, method: str, path: str) -> None:
    answer = service.ask(method, path, headers={"accept": "text/event-stream"})
    assert answer.status == 405
    assert answer.headers["allow"] == "POST, OPTIONS"
    assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("revision", [OLD, MODERN])
@pytest.mark.parametrize("accept", ["", "*/*", "application/json", "text/html", "application/*;q=0.1"])
def test_any_accept_gets_json(service: Service, revision: str, accept: str) -> None:
    answer = post(service, "tools/list", revision=revision, headers={"accept": accept})
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["result"]["tools"]


@pytest.mark.parametrize("revision", [OLD, MODERN])
def test_who_accepts_events_only_gets_the_answer_as_one(service: Service, revision: str) -> None:
    answer = post(service, "tools/list", revision=revision, headers={"accept": "text/event-stream"})
    assert answer.headers["content-type"] == "text/event-stream"
    event, data, *rest = answer.body.decode().split("\r\n")
    assert (event, rest) == ("event: message", ["", ""])
    assert json.loads(data.removeprefix("data: "))["result"]["tools"]


@pytest.mark.parametrize("revision", [OLD, MODERN])
@pytest.mark.parametrize("content_type", ["", "text/plain", "application/json; charset=utf-8", "nonsense"])
def test_any_content_type_is_taken_for_json(service: Service, revision: str, content_type: str) -> None:
    answer = post(service, "tools/list", revision=revision, headers={"content-type": content_type})
    assert answer.status == 200


def test_a_request_without_any_header_of_mcp_is_answered(service: Service) -> None:
    body = json.dumps(LIST).encode()
    head = f"POST /mcp HTTP/1.1\r\nhost: {service.url[7:]}\r\ncontent-length: {len(body)}\r\n"
    with service.connect() as connection:
        connection.sendall(head.encode() + b"connection: close\r\n\r\n" + body)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"save_checkpoint"' in answer


@pytest.mark.parametrize("revision", REVISIONS)
def test_spaces_around_a_header_value_do_not_count(service: Service, revision: str) -> None:
    sent = message("tools/call", {"name": "usage_and_upgrade", "arguments": {}}, revision=revision)
    spaced = {name: f" {value}  " for name, value in headers_for(sent, revision=revision).items()}
    spaced["authorization"] = f"Bearer {service.key}  "
    answer = service.ask("POST", "/mcp", sent, headers=spaced)
    assert answer.status == 200
    assert answer.json["result"]["structuredContent"]["mode"] == "acting"


def test_a_session_of_a_server_long_gone_is_ignored(service: Service) -> None:
    stale = {"mcp-session-id": "of yesterday", "last-event-id": "7"}
    answer = post(service, "tools/list", revision=OLD, headers=stale)
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers


def test_a_preflight_is_answered_before_anyone_asks_who_it_is(service: Service) -> None:
    asked = {
        "origin": "http://localhost:6274",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, mcp-protocol-version, x-own",
        "authorization": "Bearer wrong",
    }
    answer = service.ask("OPTIONS", "/mcp", headers=asked)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-headers"] == asked["access-control-request-headers"]
    assert "POST" in answer.headers["access-control-allow-methods"]


# --- keys, and no OAuth -------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("sent", ["Bearer rmk_live_wrong", "Bearer", "Basic abc", "x"])
def test_a_wrong_key_is_401_and_starts_no_oauth(service: Service, revision: str, sent: str) -> None:
    answer = post(service, "tools/list", revision=revision, headers={"authorization": sent})
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "key" in str(error_of(answer)["message"])


@pytest.mark.parametrize("form", ["Bearer {}", "{}", "bearer {}"])
def test_a_key_is_taken_with_and_without_bearer(service: Service, form: str) -> None:
    params = {"name": "usage_and_upgrade", "arguments": {}}
    answer = post(service, "tools/call", params, headers={"authorization": form.format(service.key)})
    assert answer.json["result"]["structuredContent"]["plan"] == "own"


@pytest.mark.parametrize("headers", [{}, {"authorization": ""}])
def test_nobody_is_asked_for_credentials(service: Service, headers: dict[str, str]) -> None:
    params = {"name": "usage_and_upgrade", "arguments": {}}
    answer = post(service, "tools/call", params, headers=headers)
    assert answer.status == 200
    assert answer.json["result"]["structuredContent"]["mode"] == "watch"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/mcp",
        "/mcp/.well-known/openid-configuration",
        "/mcp/.well-known/oauth-protected-resource",
        "/register",
        "/authorize",
        "/token",
        "/sse",
    ],
)
def test_no_path_leads_into_oauth(service: Service, method: str, path: str) -> None:
    answer = service.ask(method, path, None if method == "GET" else {})
    assert answer.status == 404
    assert answer.code == "not_found"
    assert "location" not in answer.headers


# --- malformed messages -------------------------------------------------------------------------------------

MALFORMED = {
    "a batch": (b"[" + json.dumps(LIST).encode() + b"]", -32600, "a batch is not accepted"),
    "an empty batch": (b"[]", -32600, "a batch is not accepted"),
    "no JSON": (b'{"jsonrpc": "2.0", "id"', -32700, "is not JSON"),
    "nothing": (b"", -32700, "is not JSON"),
    "text": (b'"tools/list"', -32600, "an object"),
    "null": (b"null", -32600, "an object"),
    "another protocol": (b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}', -32600, "jsonrpc"),
    "no jsonrpc": (b'{"id": 1, "method": "tools/list"}', -32600, "jsonrpc"),
    "no method": (b'{"jsonrpc": "2.0", "id": 1}', -32600, "method"),
    "a method that is no text": (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600, "method"),
    "an id that is an object": (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600, "id must be"),
    "an id that is null": (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, "id must be"),
    "params in a list": (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', -32600, "params"),
    "a lone surrogate": (
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "\\ud800"}}',
        -32700,
        "/params/x",
    ),
    "a thousand levels": (
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": '
        + b"[" * 1_000
        + b"]" * 1_000
        + b"}}",
        -32700,
        "/params/x",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("revision", [None, OLD, MODERN])
def test_a_malformed_envelope_is_400_in_words(service: Service, revision: str | None, name: str) -> None:
    body, code, words = MALFORMED[name]
    headers = {} if revision is None else {"mcp-protocol-version": revision}
    answer = service.ask("POST", "/mcp", body, headers=headers)
    assert answer.status == 400
    error = error_of(answer)
    assert error["code"] == code
    assert words in str(error["message"])


def test_a_compressed_body_is_refused_in_words(service: Service) -> None:
    answer = post(service, "tools/list", headers={"content-encoding": "gzip"})
    assert answer.status == 400
    assert "send plain JSON" in str(error_of(answer)["message"])


@pytest.mark.parametrize("revision", [OLD, MODERN])
def test_a_body_over_the_limit_is_413_in_words(service: Service, revision: str) -> None:
    params = {"name": "save_checkpoint", "arguments": {"run_id": "x" * MIB}}
    answer = post(service, "tools/call", params, revision=revision)
    assert answer.status == 413
    assert "1,048,576" in str(error_of(answer)["message"])


@pytest.mark.parametrize("revision", [OLD, MODERN])
def test_a_body_over_the_limit_in_chunks_is_413_while_it_arrives(service: Service, revision: str) -> None:
    sent = message("tools/call", {"name": "resume", "arguments": {"run_id": "x" * MIB}}, revision=revision)
    headers = headers_for(sent, revision=revision) | {"host": service.url[7:], "transfer-encoding": "chunked"}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    body = json.dumps(sent).encode()
    with service.connect() as connection:
        # The last chunk is not sent: the answer must not wait for the end.
        connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n{len(body):x}\r\n".encode() + body + b"\r\n")
        response = http.client.HTTPResponse(connection)
        response.begin()
        answer = answer_of(response)
    assert answer.status == 413
    assert "1,048,576" in str(error_of(answer)["message"])


def test_an_answer_to_no_question_is_acknowledged(service: Service) -> None:
    answer = service.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "result": {}})
    assert answer.status == 202


# The status is the SDK's for the revision, as `test_mcp` says of unknown tools.
@pytest.mark.parametrize(("revision", "status"), [*((old, 200) for old in HANDSHAKE), (MODERN, 404)])
def test_an_unknown_method_is_named_as_such(service: Service, revision: str, status: int) -> None:
    answer = post(service, "tools/lost", revision=revision)
    assert answer.status == status
    assert error_of(answer)["code"] == -32601


# --- Host and Origin ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", [OLD, MODERN])
@pytest.mark.parametrize(
    ("header", "value"),
    [("host", "runs.example"), ("host", ""), ("origin", "https://example.com"), ("origin", "null")],
)
def test_a_web_page_cannot_reach_a_service_of_this_machine(
    service: Service, revision: str, header: str, value: str
) -> None:
    answer = post(service, "tools/list", revision=revision, headers={header: value})
    assert answer.status == 403
    assert f"RUNMEMORY_ALLOWED_{header.upper()}S" in str(error_of(answer)["message"])


@pytest.mark.parametrize("origin", ["http://localhost:6274", "http://127.0.0.1:80", "http://[::1]:9"])
def test_pages_of_this_machine_may_call(service: Service, origin: str) -> None:
    assert post(service, "tools/list", headers={"origin": origin}).status == 200


def settings_with(**variables: str) -> Settings:
    environment = {f"RUNMEMORY_{name.upper()}": value for name, value in variables.items()}
    return from_environment(default_database=lambda: "sqlite:///x", environment=environment)


def test_hosts_and_origins_are_configured() -> None:
    ours = settings_with(allowed_hosts="Runs.example, 10.0.0.1:80", allowed_origins="https://app.example")
    mcp_origins.check_host(b"runs.example", ours)
    mcp_origins.check_host(b"RUNS.example:443", ours)
    mcp_origins.check_host(b"10.0.0.1:80", ours)
    mcp_origins.check_origin(b"https://app.example", ours)
    mcp_origins.check_origin(None, ours)
    for host in (b"other.example", b"10.0.0.1:81", b"[", b""):
        with pytest.raises(WrongOrigin):
            mcp_origins.check_host(host, ours)
    for origin in (b"http://app.example", b"https://app.example.evil", b"null"):
        with pytest.raises(WrongOrigin):
            mcp_origins.check_origin(origin, ours)


@pytest.mark.parametrize("variables", [{"host": "0.0.0.0"}, {"allowed_hosts": "*", "allowed_origins": "*"}])
def test_a_public_service_answers_to_any_name(variables: dict[str, str]) -> None:
    ours = settings_with(**variables)
    mcp_origins.check_host(b"anything", ours)
    mcp_origins.check_origin(b"https://anything", ours)
