"""Bad bodies: each gets the documented answer, none a 500, and nothing of them is kept."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from runmemory_core.model import MIB, Plan
from runmemory_core.parts import address
from tests.service.serving import Answer, Service, answer_of, new_key_in, until

SAVE = "/api/run/save_checkpoint"
LIMIT = 262_144


class Refused(NamedTuple):
    """How a save is refused: its state or, where a mark says so, its whole body; and where it points."""

    text: str
    status: int
    code: str
    pointer: str | None
    whole: bool = False


REFUSALS = {
    "NaN": Refused('{"a": [1, NaN]}', 422, "invalid_json", "/state/a/1"),
    "infinity": Refused('{"a": -Infinity}', 422, "invalid_json", "/state/a"),
    "a number over a double": Refused('{"a": 1e999}', 422, "invalid_json", "/state/a"),
    "a lone surrogate": Refused(r'{"a": "\ud800"}', 422, "invalid_json", "/state/a"),
    "65 levels": Refused("[" * 65 + "]" * 65, 422, "invalid_json", "/state"),
    "65 levels below a key": Refused(
        '{"a": ' + "[" * 64 + "]" * 64 + "}", 422, "invalid_json", "/state/a" + "/0" * 63
    ),
    "a thousand levels": Refused(
        '{"a": ' + "[" * 1_000 + "]" * 1_000 + "}", 422, "invalid_json", "/state/a" + "/0" * 198
    ),
    "an integer of 5,000 digits": Refused('{"a": ' + "9" * 5_000 + "}", 422, "invalid_json", "/state/a"),
    "no object": Refused("[1]", 422, "invalid_json", "/state"),
    "text that is no object": Refused('"plain"', 422, "invalid_json", "/state"),
    "no run_id": Refused('{"step": "one"}', 422, "invalid_request", "/run_id", whole=True),
    "an unknown argument": Refused(
        '{"run_id": "RUN", "step": "one", "stat": {}}', 422, "invalid_request", "/stat", whole=True
    ),
    "a run_id too long": Refused(
        json.dumps({"run_id": "x" * 201, "step": "one"}), 422, "invalid_request", "/run_id", whole=True
    ),
    "a run_id that is NaN": Refused(
        '{"run_id": NaN, "step": "one"}', 422, "invalid_json", "/run_id", whole=True
    ),
    "a run_id of 5,000 digits": Refused(
        '{"run_id": ' + "9" * 5_000 + ', "step": "one"}', 422, "invalid_json", "/run_id", whole=True
    ),
    "a list": Refused("[]", 400, "malformed_body", None, whole=True),
    "null": Refused("null", 400, "malformed_body", None, whole=True),
    "a body cut short": Refused('{"run_id": "RUN", "st', 400, "malformed_body", None, whole=True),
    "two objects": Refused("{}{}", 400, "malformed_body", None, whole=True),
    "a thousand open brackets": Refused("[" * 1_000, 422, "invalid_json", "/0" * 200, whole=True),
    "no UTF-8": Refused('{"run_id": "\udcff"}', 400, "malformed_body", None, whole=True),
    "nothing": Refused("", 422, "invalid_request", "/run_id", whole=True),
}


def nothing_was_kept(service: Service, run_id: str) -> bool:
    return service.tool("list_checkpoints", {"run_id": run_id}).status == 404


def send(service: Service, head: str, *pieces: bytes) -> Answer:
    """Send a request as it stands, so that it may be one that no library would send."""
    with service.connect() as connection:
        lines = [head, "host: test", f"authorization: Bearer {service.key}"]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        for piece in pieces:
            connection.sendall(piece)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return answer_of(response)


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_saved_is_refused_by_place_and_nothing_is_kept(service: Service, name: str) -> None:
    run_id, refused = f"refused: {name}", REFUSALS[name]
    body = refused.text if refused.whole else f'{{"run_id": "RUN", "step": "one", "state": {refused.text}}}'
    sent = body.replace("RUN", run_id).encode(errors="surrogateescape")
    answer = service.ask("POST", SAVE, sent, key=service.key)
    assert (answer.status, answer.code) == (refused.status, refused.code)
    errors = answer.json.get("errors", [])
    assert (errors[0]["pointer"] if errors else None) == refused.pointer
    assert nothing_was_kept(service, run_id)


@pytest.mark.parametrize(
    "state",
    [
        '{"a":"\\u0000 and \\ud83d\\ude00"}',
        '{"a":' + "9" * 4_000 + ',"b":1.0,"c":-0.0}',
        '{"a":' + "[" * 63 + "]" * 63 + "}",
        '{"z":1,"a":2,"":null}',
    ],
    ids=["NUL and a pair of surrogates", "4,000 digits", "64 levels", "order and an empty key"],
)
def test_what_json_can_hold_comes_back_exactly(service: Service, state: str) -> None:
    run_id = f"kept: {state[:20]}"
    sent = f'{{"run_id": {json.dumps(run_id)}, "step": "one", "state": {state}}}'.encode()
    assert service.ask("POST", SAVE, sent, key=service.key).status == 200
    resumed = service.tool("resume", {"run_id": run_id, "peek": True})
    assert repr(resumed.json["checkpoint"]["state"]) == repr(json.loads(state))


def test_of_duplicate_keys_the_last_wins(service: Service, run_id: str) -> None:
    sent = f'{{"run_id": "{run_id}", "step": "one", "step": "two", "state": {{"a": 1, "a": 2}}}}'.encode()
    assert service.ask("POST", SAVE, sent, key=service.key).json["step"] == "two"
    assert service.tool("resume", {"run_id": run_id, "peek": True}).json["checkpoint"]["state"] == {"a": 2}


def test_a_state_of_262144_bytes_passes(service: Service, run_id: str) -> None:
    state = {"a": "x" * (LIMIT - len('{"a":""}'))}
    answer = service.tool("save_checkpoint", {"run_id": run_id, "step": "one", "state": state})
    assert (answer.status, answer.json["bytes"]) == (200, LIMIT)


def test_a_state_of_one_byte_more_is_refused_with_both_numbers(service: Service, run_id: str) -> None:
    state = {"a": "x" * (LIMIT - len('{"a":""}') + 1)}
    answer = service.tool("save_checkpoint", {"run_id": run_id, "step": "one", "state": state})
    assert (answer.status, answer.code) == (413, "state_too_large")
    assert (answer.json["size"], answer.json["limit"]) == (LIMIT + 1, LIMIT)
    assert "xxx" not in answer.json["detail"]
    assert nothing_was_kept(service, run_id)


def body_of(size: int, run_id: str) -> bytes:
    """A save of exactly ``size`` bytes, most of them blanks that count for nothing but the body."""
    start = json.dumps({"run_id": run_id, "step": "one", "state": {}}).encode()
    return start + b" " * (size - len(start))


def test_a_body_of_a_mebibyte_passes_and_one_byte_more_is_refused(service: Service, run_id: str) -> None:
    passed = service.ask("POST", SAVE, body_of(MIB, run_id), key=service.key)
    refused = service.ask("POST", SAVE, body_of(MIB + 1, run_id + "+"), key=service.key)
    assert passed.status == 200
    assert (refused.status, refused.code) == (413, "body_too_large")
    assert (refused.json["size"], refused.json["limit"]) == (MIB + 1, MIB)
    assert nothing_was_kept(service, run_id + "+")


def chunked(body: bytes, size: int) -> list[bytes]:
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    return [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b"")]


def test_a_chunked_body_is_read_whole(service: Service, run_id: str) -> None:
    body = json.dumps({"run_id": run_id, "step": "one", "state": {"a": "b" * 1_000}}).encode()
    head = f"POST {SAVE} HTTP/1.1\r\ntransfer-encoding: chunked"
    assert send(service, head, *chunked(body, 7)).json["saved"]


def test_a_chunked_body_is_counted_while_it_arrives(service: Service, run_id: str) -> None:
    head = f"POST {SAVE} HTTP/1.1\r\ntransfer-encoding: chunked"
    # The last chunk is not sent: the answer must not wait for the end.
    answer = send(service, head, *chunked(body_of(MIB + 70_000, run_id), 65_536)[:-1])
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert nothing_was_kept(service, run_id)


def test_a_length_that_is_too_large_is_refused_before_the_body_is_sent(service: Service) -> None:
    answer = send(service, f"POST {SAVE} HTTP/1.1\r\ncontent-length: {10 * MIB}\r\nexpect: 100-continue")
    assert (answer.status, answer.code) == (413, "body_too_large")


def test_a_body_shorter_than_its_length_is_not_half_kept(service: Service, run_id: str) -> None:
    body = json.dumps({"run_id": run_id, "step": "one", "state": {}}).encode()
    head = f"POST {SAVE} HTTP/1.1\r\nauthorization: Bearer {service.key}\r\ncontent-length: {len(body) + 10}"
    with service.connect() as connection:
        connection.sendall(f"{head}\r\n\r\n".encode() + body)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert nothing_was_kept(service, run_id)


def test_a_body_longer_than_its_length_is_cut_there_and_refused(service: Service, run_id: str) -> None:
    body = json.dumps({"run_id": run_id, "step": "one", "state": {}}).encode()
    answer = send(service, f"POST {SAVE} HTTP/1.1\r\ncontent-length: {len(body) - 10}", body)
    assert (answer.status, answer.code) == (400, "malformed_body")
    assert nothing_was_kept(service, run_id)


@pytest.mark.parametrize("head", ["NONSENSE", "POST / HTTP/1.1\r\ncontent-length: many", "\0\1\2"])
def test_what_is_no_http_gets_a_problem_too(service: Service, head: str) -> None:
    answer = send(service, head)
    assert (answer.status, answer.code) == (400, "malformed_body")


def test_a_compressed_body_is_refused_in_words(service: Service, run_id: str) -> None:
    body = {"run_id": run_id, "step": "one"}
    answer = service.tool("save_checkpoint", body, headers={"content-encoding": "gzip"})
    assert (answer.status, answer.code) == (400, "malformed_body")
    assert "compressed" in answer.json["detail"]


def test_the_storage_interface_takes_large_bodies_with_an_acting_key_only(
    service: Service, run_id: str
) -> None:
    blanks = b" " * (2 * MIB)
    body = json.dumps({"run_id": run_id}).encode() + blanks
    watch = new_key_in(service.database, plan=Plan.WATCH)
    fetch = "/api/store/fetch"
    assert service.ask("POST", fetch, body, key=service.key).json == {}
    assert service.ask("POST", fetch, body, key=watch).json["limit"] == MIB
    assert service.ask("POST", fetch, body).code == "account_required"
    refused = send(
        service, f"POST {fetch} HTTP/1.1\r\ncontent-length: {24 * MIB + 1}\r\nexpect: 100-continue"
    )
    assert (refused.status, refused.json["limit"]) == (413, 24 * MIB)


@pytest.mark.parametrize("number", ["1e999", "9" * 5_000, "NaN"])
def test_a_number_out_of_bounds_is_refused_by_the_storage_interface(
    service: Service, run_id: str, number: str
) -> None:
    change = f'{{"op": "put", "key": "1", "metadata": {{"a": {number}}}}}'
    body = f'{{"run_id": {json.dumps(run_id)}, "adapter": "test", "operations": [{change}]}}'.encode()
    answer = service.ask("POST", "/api/store/commit", body, key=service.key)
    assert (answer.status, answer.code) == (422, "invalid_json")
    assert answer.json["errors"][0]["pointer"] == "/operations/0/metadata/a"


def test_the_idempotency_key_of_the_header_counts_as_the_argument(service: Service, run_id: str) -> None:
    body = {"run_id": run_id, "step": "one", "state": {"a": 1}}
    first = service.tool("save_checkpoint", body, headers={"idempotency-key": run_id})
    again = service.tool("save_checkpoint", body | {"idempotency_key": run_id})
    other = service.tool("save_checkpoint", body | {"step": "two"}, headers={"idempotency-key": run_id})
    assert (first.json["seq"], again.json["seq"], again.json["replayed"]) == (1, 1, True)
    assert (other.status, other.code) == (422, "idempotency_key_reused")


def test_two_different_idempotency_keys_in_one_call_are_refused(service: Service, run_id: str) -> None:
    body: dict[str, Any] = {"run_id": run_id, "step": "one", "idempotency_key": "here"}
    differing = service.tool("save_checkpoint", body, headers={"idempotency-key": "there"})
    assert (differing.status, differing.code) == (422, "invalid_request")
    assert differing.json["errors"][0]["pointer"] == "/idempotency_key"
    assert nothing_was_kept(service, run_id)
    body |= {"idempotency_key": None}
    assert service.tool("save_checkpoint", body, headers={"idempotency-key": "there"}).json["saved"]


def test_a_client_that_leaves_before_its_answer_stops_nobody_else(service: Service, run_id: str) -> None:
    body = json.dumps({"run_id": run_id, "step": "one", "state": {}}).encode()
    head = f"POST {SAVE} HTTP/1.1\r\nauthorization: Bearer {service.key}\r\ncontent-length: {len(body)}"
    with closing(service.connect()) as connection:
        connection.sendall(f"{head}\r\n\r\n".encode() + body)
    assert until(lambda: not nothing_was_kept(service, run_id))
    assert service.ask("GET", "/healthz").status == 200


def commit_of(text: str) -> dict[str, Any]:
    return {
        "run_id": "packed",
        "adapter": "langgraph",
        "operations": [{"op": "put", "key": "k", "state": [["a", {"p": address(text)}]]}],
        "parts": {address(text): text},
    }


def packed(service: Service, content: bytes, *, path: str = "/api/store/commit") -> Answer:
    return service.ask("POST", path, content, key=service.key, headers={"content-encoding": "gzip"})


def test_what_adapters_send_may_be_compressed(service: Service) -> None:
    text = json.dumps("x" * 200_000)
    assert packed(service, gzip.compress(json.dumps(commit_of(text)).encode())).status == 200
    found = service.ask("POST", "/api/store/fetch", {"run_id": "packed"}, key=service.key)
    assert found.json["parts"] == {address(text): text}


def test_a_small_body_that_unpacks_to_a_huge_one_is_refused_at_the_bound(service: Service) -> None:
    bomb = gzip.compress(b'{"run_id": "' + b"a" * 300_000_000)
    assert len(bomb) < 1_000_000
    assert packed(service, bomb).code == "body_too_large"


@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(b"{}" * 100)[:-9], gzip.compress(b"{}") + b"more"],
    ids=["no gzip", "cut off", "something after it"],
)
def test_a_broken_compressed_body_is_refused(service: Service, content: bytes) -> None:
    assert packed(service, content).code == "malformed_body"


def test_the_tools_take_no_compressed_body(service: Service) -> None:
    assert packed(service, gzip.compress(b'{"run_id": "x"}'), path="/api/run/resume").code == "malformed_body"


def test_a_client_compresses_what_is_large(service: Service) -> None:
    from runmemory_core.client._calls import make_call
    from runmemory_core.transports.wires import REST

    large, small = (
        make_call("commit", commit_of(json.dumps("x" * n)), remote=True) for n in (100_000, 1_000)
    )
    _, headers, body = REST.request(large)
    assert headers == {"content-encoding": "gzip"}
    assert len(body) < 10_000
    assert REST.request(small).headers == {}
