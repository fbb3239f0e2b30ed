"""Results that are refused for good: told once, given up, and nobody else notices."""

import operator
import threading
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from runmemory_core import StateTooLarge, Unavailable
from tests.adapters.test_langgraph_redaction import messages
from tests.adapters.test_langgraph_saver import THREAD, put, values_at

OTHER: Any = {"configurable": {"thread_id": "other", "checkpoint_ns": ""}}
BIG = "x" * 17_000_000


class Big(TypedDict, total=False):
    value: Any
    log: Annotated[list[str], operator.add]


def graph_of(saver, node):
    builder = StateGraph(Big)
    builder.add_node("n", node)
    builder.add_edge(START, "n")
    return builder.compile(checkpointer=saver)


def test_a_result_over_the_cap_stops_its_own_run_once_and_no_other(saver_maker):
    asked = {"t": BIG, "other": "small"}
    with saver_maker() as saver:
        graph = graph_of(saver, lambda _, config: {"value": asked[config["configurable"]["thread_id"]]})
        with pytest.raises(StateTooLarge):
            graph.invoke({"log": ["first"]}, THREAD, durability="sync")
        assert graph.get_state(THREAD).next == ("n",)
        assert graph.invoke({"log": []}, OTHER)["value"] == "small"
        assert len([*graph.get_state_history(OTHER)]) == 3
        assert [*saver.list(None)]
        assert saver.health.ok
        asked["t"] = "small now"
        assert graph.invoke(None, THREAD, durability="sync") == {"value": "small now", "log": ["first"]}
        asked["t"] = BIG
        with pytest.raises(StateTooLarge):
            graph.invoke({"log": []}, THREAD, durability="sync")
        asked["t"] = "a new turn"
        assert graph.invoke({"log": []}, THREAD, durability="sync")["value"] == "a new turn"
        asked["t"] = BIG
        with pytest.raises(StateTooLarge):
            graph.invoke({"log": []}, THREAD, durability="sync")
        saver.delete_thread("t")
        assert saver.get_tuple(THREAD) is None


def refusing_big(saver, monkeypatch):
    """Refuses a commit with the result ``big`` as a store refuses one that is over a limit."""
    commit = saver._outbox._commit
    refused = threading.Event()

    def refuse(run_id, operations, texts):
        if "big" in str(operations):
            refused.set()
            raise StateTooLarge("too large for this test")
        return commit(run_id, operations, texts)

    monkeypatch.setattr(saver._outbox, "_commit", refuse)
    return refused


def test_only_what_is_refused_is_given_up_and_the_checkpoint_made_of_it_too(saver, monkeypatch, caplog):
    refusing_big(saver, monkeypatch)
    at = put(saver, {"x": 0})
    saver.put_writes(at, [("x", "small")], "one")
    saver.put_writes(at, [("x", "big")], "two")
    with pytest.raises(StateTooLarge):
        put(saver, {"x": "all"}, at)
    assert saver.get_tuple(THREAD).pending_writes == [("one", "x", "small")]
    assert any(
        "results of task two of thread t are not stored: too large" in text for text in messages(caplog)
    )
    saver.put_writes(at, [("x", "fits")], "two")
    put(saver, {"x": "all"}, at)
    assert values_at(saver) == {"x": "all"}


def test_results_refused_while_nobody_waited_refuse_the_checkpoint_made_of_them(saver, monkeypatch):
    refused = refusing_big(saver, monkeypatch)
    at = put(saver, {"x": 0})
    saver.put_writes(at, [("x", "big")], "task")
    assert refused.wait(30)
    assert values_at(saver) == {"x": 0}  # when the timer is done with it, a read is no worse for it
    with pytest.raises(StateTooLarge):
        put(saver, {"x": 1}, at)
    saver.put_writes(at, [("x", "big")], "task")
    with pytest.raises(StateTooLarge):
        saver.get_tuple(THREAD)  # whoever sends it hears of it
    put(saver, {"x": "asked anew"}, at, source="input")
    assert values_at(saver) == {"x": "asked anew"}


def test_what_waits_for_other_threads_is_sent_before_a_refusal_is_raised_at_the_end(saver_maker, monkeypatch):
    with saver_maker() as saver:
        refusing_big(saver, monkeypatch)
        first, second = put(saver, {"x": 0}), put(saver, {"x": 0}, OTHER)
        monkeypatch.setattr("runmemory_langgraph._outbox.LINGER_SECONDS", 60)
        saver.put_writes(first, [("x", "big")], "task")
        saver.put_writes(second, [("x", "small")], "task")
        with pytest.raises(StateTooLarge):
            saver.close()
        saver.close()
    with saver_maker() as saver:
        assert saver.get_tuple(OTHER).pending_writes == [("task", "x", "small")]


def test_what_may_be_stored_later_goes_on_waiting(saver, monkeypatch):
    commit = saver._outbox._commit
    at = put(saver, {"x": 0})

    def away(*_):
        raise Unavailable("away")

    monkeypatch.setattr(saver._outbox, "_commit", away)
    saver.put_writes(at, [("x", 1)], "task")
    with pytest.raises(Unavailable):
        put(saver, {"x": 1}, at)
    monkeypatch.setattr(saver._outbox, "_commit", commit)
    assert saver.get_tuple(THREAD).pending_writes == [("task", "x", 1)]
