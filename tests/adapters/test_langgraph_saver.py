"""What RunMemorySaver keeps and gives back, through its own methods."""

import asyncio
import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT
from pydantic import BaseModel, SecretStr

from runmemory_core import Client, InvalidRequest
from runmemory_langgraph import DecodingRefused, RunMemorySaver, _outbox

THREAD: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def checkpoint_of(values, *, versions=None) -> Checkpoint:
    made = empty_checkpoint()
    made["channel_values"] = values
    made["channel_versions"] = versions or dict.fromkeys(values, "1")
    return made


def put(saver, values, config=THREAD, **metadata):
    made = checkpoint_of(values)
    return saver.put(config, made, {"source": "loop", "step": 0, **metadata}, made["channel_versions"])


def values_at(saver, config=THREAD):
    return saver.get_tuple(config).checkpoint["channel_values"]


@pytest.mark.parametrize(
    ("thread_id", "words"),
    [
        ("", "thread_id has 0 characters; it takes 1 to 200"),
        ("t" * 201, "thread_id has 201 characters"),
        ("ghp_" + "A1b2C3d4E5" * 3 + "abcdef", "thread_id contains what looks like a credential"),
    ],
)
def test_a_thread_id_that_names_no_run_is_refused_in_the_words_of_langgraph(saver, thread_id, words):
    config = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    for ask in (
        lambda: saver.get_tuple(config),
        lambda: put(saver, {"x": 1}, config),
        lambda: [*saver.list(config)],
        lambda: saver.delete_thread(thread_id),
        lambda: saver.copy_thread("t", thread_id),
    ):
        with pytest.raises(InvalidRequest, match=words):
            ask()


def test_setup_may_be_awaited(saver):
    async def begin():
        return await saver.setup()

    assert asyncio.run(begin()) is None
    saver.setup()


def test_a_value_of_none_is_kept_and_a_channel_without_value_stays_absent(saver):
    put(saver, {"none": None, "empty": [], "text": "a\x00b"})
    assert values_at(saver) == {"none": None, "empty": [], "text": "a\x00b"}


@pytest.mark.parametrize(
    "value",
    [
        "x" * 900_000,
        {"deep": {"text": "é" * 200_000}},
        ["y" * 300_000, "z" * 300_000],
        [{"n": n, "text": "m" * 300} for n in range(500)],
        list(range(1000)),
        [],
        [[]],
        ["only one"],
        [None] * 33,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_any_size_come_back_whole_to_another_process(saver_maker, value):
    with saver_maker() as writer:
        put(writer, {"value": value})
    with saver_maker() as reader:
        assert values_at(reader)["value"] == value


def test_an_append_to_a_long_chat_sends_little_more_than_the_message(saver_maker):
    sent = []

    def counting(run_id, operations, texts):
        sent.append(sum(map(len, texts.values())) + len(str(operations)))
        return commit(run_id, operations, texts)

    with saver_maker() as saver:
        commit = saver._outbox._commit
        saver._outbox._commit = counting
        messages = [{"role": "user", "content": f"{n} " + "word " * 400} for n in range(200)]
        config = THREAD
        for n in range(1, 201):
            config = put(saver, {"messages": messages[:n]}, config)
        assert values_at(saver)["messages"] == messages
    assert sum(sent) < 3 * sum(len(str(message)) for message in messages)


def test_the_first_write_of_an_index_stands_and_the_last_error_does(saver):
    at = put(saver, {"x": 1})
    saver.put_writes(at, [("x", "first")], "task")
    saver.put_writes(at, [("x", "second")], "task")
    saver.put_writes(at, [(ERROR, "early")], "task")
    saver.put_writes(at, [(ERROR, "late")], "task")
    assert saver.get_tuple(at).pending_writes == [("task", ERROR, "late"), ("task", "x", "first")]


def test_writes_come_in_the_order_of_task_path_not_of_task_id(saver):
    at = put(saver, {"x": 1})
    saver.put_writes(at, [("x", "b")], "task-a", "~__pregel_pull, 2")
    saver.put_writes(at, [("x", "a")], "task-b", "~__pregel_pull, 1")
    assert [value for _, _, value in saver.get_tuple(at).pending_writes] == ["a", "b"]


def test_writes_may_arrive_before_their_checkpoint(saver):
    made = checkpoint_of({"x": 1})
    ahead = {"configurable": {**THREAD["configurable"], "checkpoint_id": made["id"]}}
    saver.put_writes(ahead, [("x", 2)], "task")
    assert saver.get_tuple(ahead) is None
    saver.put(THREAD, made, {"source": "input", "step": -1}, made["channel_versions"])
    assert saver.get_tuple(ahead).pending_writes == [("task", "x", 2)]


def test_results_of_a_long_parallel_step_are_sent_without_waiting_for_its_checkpoint(saver_maker):
    with saver_maker() as working, saver_maker() as looking:
        at = put(working, {"x": 1})
        working.put_writes(at, [("x", 2)], "task")
        deadline = time.monotonic() + 20
        while not looking.get_tuple(at).pending_writes:
            assert time.monotonic() < deadline, "the results were never sent"
            time.sleep(0.01)
        assert looking.get_tuple(at).pending_writes == [("task", "x", 2)]


def test_an_interrupt_is_stored_when_put_writes_returns(saver_maker):
    with saver_maker() as working, saver_maker() as looking:
        at = put(working, {"x": 1})
        working.put_writes(at, [(INTERRUPT, ["ask"])], "task")
        assert looking.get_tuple(at).pending_writes == [("task", INTERRUPT, ["ask"])]


@pytest.mark.parametrize("halting", [INTERRUPT, ERROR])
def test_what_comes_after_an_interrupt_or_an_error_of_its_step_is_stored_at_once(
    saver_maker, monkeypatch, halting
):
    monkeypatch.setattr(_outbox, "LINGER_SECONDS", 3_600)
    with saver_maker() as working, saver_maker() as looking:
        at = put(working, {"x": 1})
        working.put_writes(at, [("x", "early")], "task-0")
        working.put_writes(at, [(halting, "why")], "task-1")
        working.put_writes(at, [("x", "late")], "task-2")
        expected = [("task-0", "x", "early"), ("task-1", halting, "why"), ("task-2", "x", "late")]
        assert looking.get_tuple(at).pending_writes == expected
        after = put(working, {"x": 2}, at)
        working.put_writes(after, [("x", "next")], "task-3")
        assert looking.get_tuple(after).pending_writes == []


def test_a_step_and_its_results_are_one_call(saver, monkeypatch):
    calls = []
    commit = saver._outbox._commit
    monkeypatch.setattr(saver._outbox, "_commit", lambda *given: calls.append(1) or commit(*given))
    at = put(saver, {"x": 1})
    saver.put_writes(at, [("x", 2)], "task")
    put(saver, {"x": 2}, at)
    assert len(calls) == 2


def test_results_and_their_checkpoint_may_be_larger_together_than_a_service_takes_at_once(saver_maker):
    large = ["".join(f"{n}{i:06}" for i in range(1_900_000)) for n in range(2)]
    with saver_maker() as saver, saver_maker() as looking:
        at = put(saver, {"x": 1})
        saver.put_writes(at, [("x", large[0])], "task")
        after = put(saver, {"x": large[1]}, at)
        assert values_at(looking, after) == {"x": large[1]}
        assert looking.get_tuple(at).pending_writes == [("task", "x", large[0])]


def test_two_forks_of_one_checkpoint_keep_their_own_values(saver):
    root = put(saver, {"x": "root"})
    left, right = put(saver, {"x": "left"}, root), put(saver, {"x": "right"}, root)
    assert [values_at(saver, each)["x"] for each in (root, left, right)] == ["root", "left", "right"]
    first, second = saver.get_next_version("1", None), saver.get_next_version("1", None)
    assert first != second
    assert first > "1".zfill(32)


def test_versions_go_on_from_integers(saver):
    assert saver.get_next_version(41, None).startswith(f"{42:032}.")
    assert saver.get_next_version(None, None).startswith(f"{1:032}.")


def test_an_integer_thread_id_is_its_decimal_string(saver):
    put(saver, {"x": 1}, {"configurable": {"thread_id": 7, "checkpoint_ns": ""}})
    assert values_at(saver, {"configurable": {"thread_id": "7"}}) == {"x": 1}


def test_a_config_without_thread_id_says_what_is_missing(saver):
    with pytest.raises(ValueError, match="thread_id"):
        saver.get_tuple({"configurable": {}})


@pytest.mark.parametrize(
    "array", [np.array(["a", {}], dtype=object), np.array([(1, 2.0)], dtype=[("n", "<i4"), ("x", "<f8")])]
)
def test_an_array_of_which_only_addresses_would_be_saved_is_refused_by_channel_and_path(saver, array):
    for value, where in ((array, "/"), ({"deep": [array]}, "/deep/0"), ([1, array], "/1")):
        with pytest.raises(TypeError, match=f"channel 'work' holds a NumPy array .* at {where}, "):
            put(saver, {"work": value})
    put(saver, {"work": ["|O", {"dtype": "|V8"}, np.array([1])]})
    assert values_at(saver)["work"][:2] == ["|O", {"dtype": "|V8"}]


def test_a_value_that_cannot_be_saved_is_named_by_channel_and_path(saver):
    with pytest.raises(TypeError, match=r"channel 'work' holds a value at /1/inner/socket"):
        put(saver, {"work": [1, {"inner": {"socket": object()}}]})
    assert saver.get_tuple(THREAD) is None


def test_parts_that_the_store_lost_are_sent_again(saver_maker):
    long = ["a long message " * 50, "another one " * 50]
    with saver_maker() as saver, saver_maker() as other:
        put(saver, {"messages": long})
        other.delete_thread("t")
        put(saver, {"messages": long})
        assert values_at(other) == {"messages": long}


def test_a_late_write_to_a_deleted_thread_is_refused_and_a_new_start_is_not(saver_maker):
    with saver_maker() as saver, saver_maker() as other:
        at = put(saver, {"x": 1})
        other.delete_thread("t")
        with pytest.raises(Exception, match="deleted"):
            put(saver, {"x": 2}, at)
        put(saver, {"x": 3})
        assert values_at(saver) == {"x": 3}


def test_filters_are_equality_and_hostile_keys_match_nothing(saver):
    put(saver, {"x": 1}, source="loop", custom="a")
    hostile = "x' OR '1'='1"
    assert [*saver.list(THREAD, filter={hostile: 1})] == []
    assert len([*saver.list(THREAD, filter={"custom": "a"})]) == 1
    assert [*saver.list(THREAD, filter={"custom": "b"})] == []


def test_a_list_longer_than_a_page_comes_whole_and_newest_first(saver):
    config = THREAD
    for n in range(120):
        config = put(saver, {"n": n}, config)
    assert [found.checkpoint["channel_values"]["n"] for found in saver.list(THREAD)] == [*range(119, -1, -1)]
    assert len([*saver.list(THREAD, limit=70)]) == 70
    assert [*saver.list(THREAD, limit=0)] == []


def test_list_without_namespace_means_all_and_empty_means_the_root(saver):
    put(saver, {"x": 1})
    put(saver, {"x": 2}, {"configurable": {"thread_id": "t", "checkpoint_ns": "child:1"}})
    put(saver, {"x": 3}, {"configurable": {"thread_id": "other", "checkpoint_ns": ""}})
    assert len([*saver.list({"configurable": {"thread_id": "t"}})]) == 2
    assert len([*saver.list(THREAD)]) == 1
    assert len([*saver.list(None)]) == 3


def test_one_saver_works_from_several_event_loops_and_without_any(saver):
    async def step(n):
        made = checkpoint_of({"n": n})
        await saver.aput(THREAD, made, {"source": "loop", "step": n}, made["channel_versions"])
        found: Any = await saver.aget_tuple(THREAD)
        return found.checkpoint["channel_values"]["n"]

    assert [asyncio.run(step(n)) for n in range(3)] == [0, 1, 2]
    assert values_at(saver) == {"n": 2}


@dataclass
class Invoice:
    number: int


def test_a_class_of_ones_own_comes_back_as_itself(saver_maker):
    with saver_maker() as saver:
        put(saver, {"invoice": Invoice(7)})
    with saver_maker() as saver:
        assert values_at(saver)["invoice"] == Invoice(7)


def test_a_function_named_in_stored_values_is_never_called(saver):
    hostile = {"$lg": "ext", "code": 0, "type": "os:system", "value": "true"}
    put(saver, {"command": hostile})
    assert values_at(saver)["command"] == hostile  # a user's own dict of that form stays data
    saver._client.store.commit(
        "t",
        "langgraph",
        operations=[{"op": "put", "key": "zzz", "state": [("command", {"=": hostile})], "extra": {"=": {}}}],
        parts={},
    )
    with pytest.raises(DecodingRefused, match=r"os[.:]system"):
        saver.get_tuple(THREAD)


def test_redaction_cannot_be_turned_off_for_a_service():
    with pytest.raises(InvalidRequest, match="redact"):
        RunMemorySaver("http://127.0.0.1:9", api_key="rmk_live_x", redact=False)


def test_a_url_without_a_key_is_refused_before_any_node_runs():
    with pytest.raises(Exception, match="RUNMEMORY_API_KEY"):
        RunMemorySaver("http://127.0.0.1:9")


def test_from_conn_string_is_usable_bare_in_with_and_in_async_with(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    bare = RunMemorySaver.from_conn_string(url)
    bare.setup()
    bare.setup()
    put(bare, {"x": 1})
    bare.close()
    with RunMemorySaver.from_conn_string(url) as saver:
        assert values_at(saver) == {"x": 1}

    async def read():
        async with RunMemorySaver.from_conn_string(url) as saver:
            found: Any = await saver.aget_tuple(THREAD)
        return found.checkpoint["channel_values"]

    assert asyncio.run(read()) == {"x": 1}


@pytest.mark.parametrize("make", [RunMemorySaver, RunMemorySaver.from_conn_string])
def test_a_saver_takes_what_a_client_takes(make, tmp_path):
    with make(tmp_path / "x") as saver:
        put(saver, {"x": 1})
    assert (tmp_path / "x").exists()
    taken = get_type_hints(Client.__init__)["url"]
    assert get_type_hints(RunMemorySaver.__init__)["url"] == taken
    assert get_type_hints(RunMemorySaver.from_conn_string)["conn_string"] | None == taken


class Login(BaseModel):
    user: str
    token: SecretStr


def test_secrets_are_removed_by_name_and_by_type_before_they_are_stored(
    saver_maker, transport, service, caplog
):
    canary = "canary-8461-never-on-disk"
    with saver_maker() as saver:
        at = put(
            saver,
            {
                "password": canary,
                "config": {"api_key": canary, "max_tokens": 9},
                "login": Login(user="u", token=SecretStr(canary)),
            },
            session_password=canary,
        )
        saver.put_writes(at, [("config", {"client_secret": canary})], "task")
        kept = values_at(saver)
    assert kept["password"] == "[removed]"
    assert kept["config"] == {"api_key": "[removed]", "max_tokens": 9}
    assert kept["login"].token.get_secret_value() == "[removed]"
    folder = (
        Path(saver._client.where).parent if transport == "embedded" else Path(service.database[10:]).parent
    )
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if canary.encode() in file.read_bytes()]
    warned = [record.getMessage() for record in caplog.records]
    assert any("/config/api_key" in text for text in warned)
    assert not any(canary in text for text in warned)


def test_redaction_can_be_turned_off_for_a_file_of_ones_own(tmp_path):
    with RunMemorySaver(f"sqlite:///{tmp_path}/x.db", redact=False) as saver:
        put(saver, {"password": "kept"})
        assert values_at(saver) == {"password": "kept"}


def test_a_value_that_would_be_a_pickle_is_refused_when_it_is_saved(tmp_path):
    serde = JsonPlusSerializer(pickle_fallback=True)
    with (
        RunMemorySaver(f"sqlite:///{tmp_path}/x.db", serde=serde) as saver,
        pytest.raises(TypeError, match="pickle"),
    ):
        put(saver, {"odd": slice(1, 2)})


class Reversing(CipherProtocol):
    """A cipher that anybody can read, but no JSON reader."""

    def encrypt(self, plaintext):
        return "reversed", plaintext[::-1]

    def decrypt(self, ciphername, ciphertext):  # noqa: ARG002 - the protocol's arguments
        return ciphertext[::-1]


class Shouting:
    """A serializer of somebody's own."""

    def dumps_typed(self, obj):
        return "shouted", json.dumps(obj).upper().encode()

    def loads_typed(self, data):
        assert data[0] == "shouted"
        return json.loads(data[1].lower())


def nested(depth):
    value = "bottom"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("serde", "values"),
    [
        (EncryptedSerializer(Reversing()), {"m": [HumanMessage("a"), AIMessage("b")], "n": [1, "two", {}]}),
        (Shouting(), {"m": ["a", "b", {}], "n": []}),
        (None, {"m": [nested(56), 1], "n": [nested(55), 1]}),
        (None, {"m": [b"bytes", bytearray(b"array"), "text"], "n": [float("inf"), None]}),
    ],
    ids=["encrypted", "foreign", "too deep to show", "bytes"],
)
def test_lists_come_back_whole_whatever_the_serializer(saver_maker, serde, values):
    with saver_maker(serde=serde) as saver:
        at = put(saver, values)
        saver.put_writes(at, [("m", values["m"])], "task")
    with saver_maker(serde=serde) as saver:
        found = saver.get_tuple(THREAD)
        assert found.checkpoint["channel_values"] == values
        assert found.pending_writes == [("task", "m", values["m"])]


def test_equal_bytes_under_two_channels_are_not_mixed_up(saver):
    values = {"a": b"bc", "ab": b"c", "abc": b""}
    put(saver, values)
    assert values_at(saver) == values


def test_headers_as_pairs_lose_their_values_in_a_list_too(saver):
    put(
        saver,
        {
            "headers": [
                ["Authorization", "abcd1234efgh5678"],
                ["X-Api-Key", "abcd1234efgh5678"],
                ["Accept", "*/*"],
            ]
        },
    )
    assert values_at(saver)["headers"] == [
        ["Authorization", "[removed]"],
        ["X-Api-Key", "[removed]"],
        ["Accept", "*/*"],
    ]


def test_metadata_that_langgraph_goes_by_is_never_redacted(saver):
    own = {"parents": {"auth_token": "id2"}, "counters_since_delta_snapshot": {"password": [1, 2]}}
    put(saver, {"x": 1}, **own, api_key="canary")
    metadata = saver.get_tuple(THREAD).metadata
    assert {name: metadata[name] for name in own} == own
    assert metadata["api_key"] == "[removed]"


def test_closing_waits_for_what_the_timer_is_sending(saver_maker):
    sending, go_on = threading.Event(), threading.Event()
    saver = saver_maker()
    at = put(saver, {"x": 1})
    commit = saver._outbox._commit

    def slow(*given):
        sending.set()
        assert go_on.wait(20)
        return commit(*given)

    saver._outbox._commit = slow
    saver.put_writes(at, [("x", 2)], "task")
    assert sending.wait(20)
    closing = threading.Thread(target=saver.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive()
    go_on.set()
    closing.join(20)
    with saver_maker() as looking:
        assert looking.get_tuple(at).pending_writes == [("task", "x", 2)]


def test_results_that_wait_survive_a_put_that_cannot_be_saved(saver):
    at = put(saver, {"x": 1})
    saver.put_writes(at, [("x", 2)], "task")
    with pytest.raises(TypeError):
        put(saver, {"x": object()}, at)
    assert saver.get_tuple(at).pending_writes == [("task", "x", 2)]


def test_a_saver_that_is_dropped_leaves_no_thread_behind(saver_maker):
    before = threading.active_count()
    saver: Any = None
    for _ in range(5):
        saver = saver_maker()
        at = put(saver, {"x": 1})
        saver.put_writes(at, [("x", 2)], "task")
        assert saver.get_tuple(at).pending_writes == [("task", "x", 2)]
        saver._client.close()  # its sockets, not what the outbox holds
    del saver
    deadline = time.monotonic() + 20
    while threading.active_count() > before:
        assert time.monotonic() < deadline
        time.sleep(0.05)
