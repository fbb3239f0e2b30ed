"""What users of other savers reported, one test for each row of the list, by its number.

A test fails on a saver with that fault, which `test_langgraph_faults` shows for some of them; where a whole file is
about a row, the shortest form of it stands here.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import operator
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Interrupt, Send
from pydantic import BaseModel

from runmemory_core import CheckpointGone, SeqConflict, StateTooLarge, Unavailable
from runmemory_core.engine.sweeping import sweep_all
from runmemory_core.model import Limits, Plan
from runmemory_core.store import sqlite
from runmemory_langgraph import DecodingRefused, RunMemorySaver
from tests.adapters.test_langgraph_graphs import CONFIG, approval, line
from tests.adapters.test_langgraph_guards import calling, lanes, messages
from tests.adapters.test_langgraph_outage import Place, place  # noqa: F401  # pyright: ignore[reportUnusedImport]
from tests.adapters.test_langgraph_saver import THREAD, Invoice, checkpoint_of, put, values_at

ROWS = 25
Test = TypeVar("Test", bound=Callable[..., None])


def row(number: int) -> Callable[[Test], Test]:
    return pytest.mark.parametrize("row", [pytest.param(number, id=f"row-{number}")])


def counted(saver, monkeypatch) -> list[str]:
    """The operations that the saver sends from now on."""
    calls: list[str] = []
    send = saver._client.send

    def counting(model, call):
        calls.append(call.operation.name)
        return send(model, call)

    monkeypatch.setattr(saver._client, "send", counting)
    return calls


def sent_bytes(saver) -> list[int]:
    sizes: list[int] = []
    commit = saver._outbox._commit

    def counting(run_id, operations, texts):
        sizes.append(len(repr(operations)) + sum(map(len, texts.values())))
        return commit(run_id, operations, texts)

    saver._outbox._commit = counting
    return sizes


def size_of(url_path: Path) -> int:
    return sum(file.stat().st_size for file in url_path.parent.glob(f"{url_path.name}*"))


@row(1)
def test_a_conversation_takes_bytes_for_what_is_new_and_retention_bounds_it(row, tmp_path):
    noise = random.Random(1)  # which no compression makes small
    texts, drafts = ([f"{n}: {noise.randbytes(size).hex()}" for n in range(200)] for size in (1_000, 10_000))
    with RunMemorySaver(f"sqlite:///{tmp_path}/x.db", keep=20) as saver:
        config = THREAD
        for n in range(200):
            config = put(
                saver,
                {
                    "messages": [HumanMessage(text, id=text[:3]) for text in texts[: n + 1]],
                    "draft": drafts[n],
                },
                config,
            )
        assert len([*saver.list(THREAD)]) == 20
        assert len(values_at(saver)["messages"]) == 200
    assert size_of(tmp_path / "x.db") < 3 * sum(map(len, texts))


@row(2)
def test_a_channel_that_did_not_change_is_not_sent_again(row, saver):
    sizes = sent_bytes(saver)
    config = THREAD
    for n in range(20):
        config = put(saver, {"large": "x" * 100_000, "counter": n}, config)
    assert sizes[0] > 100_000
    assert max(sizes[1:]) < 2_000


@row(3)
def test_a_list_takes_a_bounded_number_of_queries_whatever_its_length(row, tmp_path, monkeypatch):
    queries: list[str] = []
    execute = sqlite._Transaction.all

    def counting(self, query, /, **values):
        queries.append(query)
        return execute(self, query, **values)

    monkeypatch.setattr(sqlite._Transaction, "all", counting)
    with RunMemorySaver(f"sqlite:///{tmp_path}/x.db") as saver:
        config = THREAD
        for n in range(45):
            config = put(saver, {"messages": ["m" * 500] * n}, config)
        counts = []
        for limit in (5, 45):
            queries.clear()
            assert len([*saver.list(THREAD, limit=limit)]) == limit
            counts.append(len(queries))
    assert counts[0] == counts[1] < 10


@row(4)
@pytest.mark.parametrize(("durability", "most"), [("sync", 13), ("exit", 2)])
def test_a_line_of_ten_nodes_takes_a_call_for_each_superstep_at_most(
    row, saver, monkeypatch, durability, most
):
    calls = counted(saver, monkeypatch)
    line(saver, [f"n{i}" for i in range(10)], []).invoke({"log": []}, CONFIG, durability=durability)
    assert len(calls) <= most


class Found(TypedDict):
    found: Annotated[list[int], operator.add]


@row(4)
def test_a_fan_out_of_twenty_takes_six_calls_at_most(row, saver, monkeypatch):
    def work(given: Any):
        return {"found": [given]}

    def spread(_: Found) -> list[Send]:
        return [Send("work", n) for n in range(20)]

    builder: Any = StateGraph(Found)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, spread)
    builder.add_edge("work", END)
    calls = counted(saver, monkeypatch)
    builder.compile(checkpointer=saver).invoke({"found": []}, CONFIG, durability="sync")
    assert len(calls) <= 6


@row(5)
def test_a_limit_bounds_the_rows_and_never_what_is_in_them(row, saver):
    at = put(saver, {"a": list(range(500)), "b": "x" * 300_000})
    for n in range(40):
        saver.put_writes(at, [("a", n), ("b", "y" * 300)], f"task-{n}")
    (found,) = saver.list(THREAD, limit=1)
    assert found == saver.get_tuple(at)
    assert len(found.pending_writes) == 80
    assert found.checkpoint["channel_values"]["a"] == list(range(500))


@row(6)
def test_a_large_value_is_kept_and_one_over_the_cap_named(row, saver):
    put(saver, {"document": "x" * 900_000})
    assert len(values_at(saver)["document"]) == 900_000
    with pytest.raises(StateTooLarge, match="document 17,"):
        put(saver, {"document": "x" * 17_000_000})


@row(7)
def test_a_saver_goes_on_after_its_service_was_restarted(row, place):  # noqa: F811
    place.start()
    saver = place.saver(on_error="raise")
    at = put(saver, {"x": 1})
    place.kill()
    place.start()
    assert values_at(saver, at) == {"x": 1}
    put(saver, {"x": 2}, at)
    assert values_at(saver) == {"x": 2}


@row(8)
def test_a_store_that_is_not_there_is_told_at_setup(row, place, tmp_path):  # noqa: F811
    with place.saver() as saver, pytest.raises(Unavailable):
        saver.setup()
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(Exception, match="File exists"):
        RunMemorySaver(f"sqlite:///{tmp_path}/file/x.db").setup()


@row(9)
def test_a_nul_character_is_kept(row, saver):
    at = put(saver, {"text": "a\x00b", "list": ["\x00" * 300, "\x00"]})
    saver.put_writes(at, [("text", "c\x00")], "task")
    found = saver.get_tuple(at)
    assert found.checkpoint["channel_values"] == {"text": "a\x00b", "list": ["\x00" * 300, "\x00"]}
    assert found.pending_writes == [("task", "text", "c\x00")]


@row(10)
def test_what_cannot_be_saved_is_named_at_put_time(row, saver):
    with pytest.raises(TypeError, match=r"channel 'tools' holds a value at /0/client"):
        put(saver, {"tools": [{"client": object()}, 1]})
    at = put(saver, {"x": 1})
    with pytest.raises(TypeError, match="channel 'out' holds a value at /"):
        saver.put_writes(at, [("out", object())], "task")


class Extra(BaseModel):
    n: int


@row(11)
def test_allowing_one_class_blocks_no_other_and_warns_of_none(row, saver_maker, caplog):
    with saver_maker(allow=[Invoice]) as saver:
        put(saver, {"a": Invoice(1), "b": Extra(n=2)})
        allowed = saver.with_allowlist([("some.module", "Name")])
        assert values_at(allowed) == values_at(saver) == {"a": Invoice(1), "b": Extra(n=2)}
    assert messages(caplog) == []


@row(12)
def test_bytes_in_the_store_run_nothing_on_load(row, saver, tmp_path):
    mark = tmp_path / "ran"
    hostile = {"$lg": "ext", "code": 0, "type": "os:system", "value": f"touch {mark}"}
    saver._client.store.commit(
        "t",
        "langgraph",
        operations=[{"op": "put", "key": "z", "state": [("x", {"=": hostile})], "extra": {"=": {}}}],
        parts={},
    )
    with pytest.raises(DecodingRefused):
        saver.get_tuple(THREAD)
    assert not mark.exists()


@row(13)
@pytest.mark.parametrize("key", ["x' OR '1'='1", 'a") OR 1=1 --', "$.source", "source') --"])
def test_a_hostile_filter_key_matches_nothing_and_harms_nothing(row, saver, key):
    put(saver, {"x": 1})
    assert [*saver.list(THREAD, filter={key: "loop"})] == []
    assert len([*saver.list(THREAD, filter={"source": "loop"})]) == 1


@row(14)
def test_filter_namespace_and_before_mean_one_thing(row, saver):
    root = put(saver, {"x": 1}, step=1, custom="a")
    second = put(saver, {"x": 2}, root, step=2, custom="b")
    put(saver, {"x": 3}, {"configurable": {"thread_id": "t", "checkpoint_ns": "child"}}, step=2, custom="b")
    assert [c.config for c in saver.list(THREAD, filter={"step": 2})] == [second]
    assert [c.config for c in saver.list(THREAD, filter={"custom": "b", "step": 1})] == []
    assert len([*saver.list({"configurable": {"thread_id": "t"}}, filter={"custom": "b"})]) == 2
    assert [c.config for c in saver.list(THREAD, before=second)] == [root]
    assert [c.config for c in saver.list(THREAD, before=root)] == []


@row(15)
def test_a_list_brings_pending_writes(row, saver):
    at = put(saver, {"x": 1})
    saver.put_writes(at, [("x", 2)], "task")
    (found,) = saver.list(THREAD)
    assert found.pending_writes == [("task", "x", 2)]


@row(16)
def test_interrupts_come_back_as_what_they_were(row, saver_maker):
    with saver_maker() as saver:
        asked = approval(saver).invoke({"log": []}, CONFIG)["__interrupt__"]
    with saver_maker() as saver:
        (task,) = approval(saver).get_state(CONFIG).tasks
        assert task.interrupts == tuple(asked)
        assert isinstance(task.interrupts[0], Interrupt)
        assert approval(saver).invoke(Command(resume={asked[0].id: "yes"}), CONFIG) == {"log": ["yes"]}


@row(17)
def test_nothing_private_of_langgraph_is_needed(row):
    folder = Path(inspect.getfile(RunMemorySaver)).parent
    for file in folder.glob("*.py"):
        tree = ast.parse(file.read_text())
        optional = {node for each in ast.walk(tree) if isinstance(each, ast.Try) for node in ast.walk(each)}
        for node in ast.walk(tree):
            if (
                not isinstance(node, ast.ImportFrom)
                or node in optional
                or not (node.module or "").startswith("lang")
            ):
                continue
            names = [*(node.module or "").split("."), *(each.name for each in node.names)]
            assert not [name for name in names if name.startswith("_") and not name.startswith("__")], file


@row(18)
def test_a_thread_expires_whole_and_any_write_keeps_it(row, tmp_path):
    day = 86_400_000
    limits = Limits(kept_for_ms=30 * day)
    with RunMemorySaver(f"sqlite:///{tmp_path}/x.db") as saver:
        at = put(saver, {"x": 1})
        transport: Any = saver._client._transport
        store, clock = transport._store, transport._clock_ms
        transport._clock_ms = lambda: clock() + 20 * day
        saver.put_writes(at, [("x", 2)], "task")
        assert saver.get_tuple(at) is not None
        now = transport._clock_ms()
        sweep_all(store, limits=dict.fromkeys(Plan, limits), now_ms=now + 29 * day)
        assert len([*saver.list(None)]) == 1
        sweep_all(store, limits=dict.fromkeys(Plan, limits), now_ms=now + 31 * day)
        with pytest.raises(CheckpointGone, match="expired"):
            saver.get_tuple(at)
        assert saver.get_tuple(THREAD) is None
        assert [*saver.list(None)] == []


@row(19)
def test_one_class_is_blocking_and_async_and_is_made_anywhere(row, saver_maker):
    with saver_maker() as saver:  # no loop runs here
        graph = line(saver, ["a"], [])
        assert graph.invoke({"log": []}, CONFIG) == {"log": ["a"]}
        assert asyncio.run(graph.ainvoke({"log": ["b"]}, CONFIG)) == {"log": ["a", "b", "a"]}
    base = {name for name, member in inspect.getmembers(BaseCheckpointSaver) if inspect.isfunction(member)}
    asked = {name for name in base if name.startswith("a") and name.removeprefix("a") in base}
    assert asked
    assert asked - {"aget"} <= RunMemorySaver.__dict__.keys()  # aget is made of aget_tuple


@row(20)
def test_each_call_of_a_subgraph_has_a_namespace_of_its_own(row, saver):
    calling(saver, 6).invoke({"log": []}, CONFIG, durability="sync")
    calls = lanes(saver) - {""}
    assert len(calls) >= 2
    for lane in calls:
        found = [*saver.list({"configurable": {"thread_id": "t", "checkpoint_ns": lane}})]
        assert {each.config["configurable"]["checkpoint_ns"] for each in found} == {lane}
        assert {each.parent_config["configurable"]["checkpoint_ns"] for each in found[:-1]} == {lane}
    assert saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": "sub"}}) is None


@row(21)
def test_results_may_come_before_their_checkpoint_and_survive_without_it(row, saver_maker):
    made = checkpoint_of({"x": 1})
    ahead = {"configurable": {**THREAD["configurable"], "checkpoint_id": made["id"]}}
    with saver_maker() as saver:
        saver.put_writes(ahead, [("x", 2)], "b", "2")
        saver.put_writes(ahead, [("x", 1)], "a", "1")
    with saver_maker() as saver:
        saver.put(THREAD, made, {"source": "input", "step": -1}, made["channel_versions"])
        assert saver.get_tuple(ahead).pending_writes == [("a", "x", 1), ("b", "x", 2)]


@row(22)
def test_a_second_worker_is_flagged_or_refused(row, saver_maker, caplog):
    with saver_maker() as one, saver_maker(on_conflict="raise") as strict:
        root = put(one, {"x": 0})
        put(one, {"x": 1}, root)
        with pytest.raises(SeqConflict):
            put(strict, {"x": 2}, root)
        put(one, {"x": 3}, root)
    assert any("another worker" in text for text in messages(caplog))


@row(23)
def test_two_forks_with_one_version_number_keep_their_values(row, saver):
    versions = {"x": "00000000000000000000000000000002.0"}
    root = put(saver, {"x": "root"})
    made = [checkpoint_of({"x": text * 100}, versions=versions) for text in ("left", "right")]
    left, right = (saver.put(root, each, {"source": "loop", "step": 1}, versions) for each in made)
    assert values_at(saver, left) == {"x": "left" * 100}
    assert values_at(saver, right) == {"x": "right" * 100}


class Account(BaseModel):
    balance: int = 0


@row(24)
def test_a_thread_with_an_invalid_state_is_repaired_by_update_state(row, saver_maker):
    def build(saver):
        def add(state: Account):
            return {"balance": state.balance + 1}

        builder: Any = StateGraph(Account)
        builder.add_node("add", add)
        builder.add_edge(START, "add")
        return builder.compile(checkpointer=saver)

    with saver_maker() as saver:
        good = build(saver).invoke({"balance": 1}, CONFIG)
        found = saver.get_tuple(CONFIG)
        broken = checkpoint_of({**found.checkpoint["channel_values"], "balance": "none of your business"})
        saver.put(found.config, {**found.checkpoint, **broken}, {"source": "loop", "step": 9}, {})
    with saver_maker() as saver:
        graph = build(saver)
        assert good == {"balance": 2}
        assert graph.get_state(found.config).values == {"balance": 2}
        graph.update_state(CONFIG, {"balance": 5}, as_node="add")
        assert graph.get_state(CONFIG).values == {"balance": 5}
        assert graph.invoke({"balance": 7}, CONFIG) == {"balance": 8}


@row(24)
def test_a_checkpoint_of_a_class_that_is_gone_leaves_the_older_ones_readable(row, saver_maker, monkeypatch):
    with saver_maker() as saver:
        good = put(saver, {"x": 1})
        bad = put(saver, {"x": Extra(n=1)}, good)
    with saver_maker() as saver, monkeypatch.context() as patch:
        patch.setattr(sys.modules[__name__], "Extra", None)
        with pytest.raises(DecodingRefused, match="allow="):
            saver.get_tuple(bad)
        assert values_at(saver, good) == {"x": 1}
    with saver_maker() as saver:
        assert values_at(saver, bad) == {"x": Extra(n=1)}


@row(25)
def test_secrets_are_gone_before_anything_is_written(row, tmp_path):
    canary = "canary-9917-not-stored"
    with RunMemorySaver(f"sqlite:///{tmp_path}/x.db") as saver:
        at = put(saver, {"config": {"api_key": canary}}, api_token=canary)
        saver.put_writes(at, [("config", {"password": canary})], "task")
        # Long bodies are compressed, where no search for bytes sees it.
        assert (found := saver.get_tuple(at)) is not None
        assert canary not in repr(found)
        assert found.checkpoint["channel_values"] == {"config": {"api_key": "[removed]"}}
    assert not [
        file for file in tmp_path.rglob("*") if file.is_file() and canary.encode() in file.read_bytes()
    ]


def test_each_row_has_a_test():
    marked = [
        mark.args[1][0].id
        for member in list(globals().values())
        for mark in getattr(member, "pytestmark", ())
        if mark.args[0] == "row"
    ]
    assert set(marked) == {f"row-{number}" for number in range(1, ROWS + 1)}


def test_an_evicted_checkpoint_is_told_from_one_that_never_was(tmp_path):
    with RunMemorySaver(f"sqlite:///{tmp_path}/x.db", keep=2) as saver:
        first = put(saver, {"x": 1})
        config = first
        for n in range(5):
            config = put(saver, {"x": n}, config)
        with pytest.raises(CheckpointGone):
            saver.get_tuple(first)
