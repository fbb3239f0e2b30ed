"""What a saver refuses, what it warns of, what it counts, and what retention takes along."""

from typing import Annotated, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from runmemory_core import CheckpointGone, SeqConflict, StateTooLarge
from tests.adapters.test_langgraph_graphs import CONFIG, Log, approval, line
from tests.adapters.test_langgraph_redaction import messages
from tests.adapters.test_langgraph_saver import THREAD, checkpoint_of, put, values_at

MIB = 1_048_576


def test_a_state_over_the_cap_is_refused_with_the_size_of_each_channel(saver):
    at = put(saver, {"small": 1, "big": ["x" * MIB] * 15})
    with pytest.raises(StateTooLarge, match=r"limit is 16,777,216.*big 17,\d+,\d+, small 1\b") as refused:
        put(saver, {"small": 1, "big": [f"{n}" + "x" * MIB for n in range(17)]}, at)
    assert refused.value.facts["channels"]["big"] > 17 * MIB
    assert len(values_at(saver)["big"]) == 15


def test_a_refused_put_leaves_the_results_before_it_to_be_stored(saver_maker):
    with saver_maker() as saver:
        at = put(saver, {"x": 1})
        saver.put_writes(at, [("x", 2)], "task")
        with pytest.raises(TypeError):
            put(saver, {"x": object()}, at)
    with saver_maker() as saver:
        assert saver.get_tuple(at).pending_writes == [("task", "x", 2)]


def test_a_second_worker_on_one_thread_is_told_of_and_both_are_kept(saver_maker, caplog):
    with saver_maker() as one, saver_maker() as other:
        root = put(one, {"x": "root"})
        mine, theirs = put(one, {"x": "mine"}, root), put(other, {"x": "theirs"}, root)
        assert values_at(one, mine) == {"x": "mine"}
        assert values_at(one, theirs) == {"x": "theirs"}
        put(other, {"x": "theirs"}, root)
    assert sum("does not continue the latest one" in text for text in messages(caplog)) == 1


def test_a_second_worker_can_be_refused(saver_maker):
    with saver_maker() as one, saver_maker(on_conflict="raise") as other:
        root = put(one, {"x": "root"})
        mine = put(one, {"x": "mine"}, root)
        with pytest.raises(SeqConflict, match="another worker"):
            put(other, {"x": "theirs"}, root)
        assert len([*one.list(THREAD)]) == 2
        put(other, {"x": "edited"}, root, source="update")  # on purpose
        assert values_at(one, mine) == {"x": "mine"}


def test_time_travel_and_edits_are_no_conflict(saver_maker):
    with saver_maker(on_conflict="raise") as saver:
        graph = line(saver, ["a", "b", "c"], [])
        graph.invoke({"log": []}, CONFIG)
        after_a = next(state for state in graph.get_state_history(CONFIG) if state.next == ("b",))
        forked = graph.update_state(after_a.config, {"log": ["changed"]})
        assert graph.invoke(None, forked)["log"] == ["a", "changed", "b", "c"]
        assert graph.invoke(None, after_a.config)["log"] == ["a", "b", "c"]


def test_going_on_from_a_chosen_checkpoint_is_neither_a_conflict_nor_a_restart(saver_maker):
    with saver_maker() as saver:
        first = put(saver, {"x": 1})
        put(saver, {"x": 2}, first)
    with saver_maker(on_conflict="raise") as saver:
        assert values_at(saver, first) == {"x": 1}
        put(saver, {"x": "otherwise"}, first)
        assert restarts(saver) == 0
        values_at(saver)
        with pytest.raises(SeqConflict, match="another worker"):
            put(saver, {"x": 3}, first)


def test_an_id_that_is_not_greater_than_its_parent_is_told_of(saver, caplog):
    at = put(saver, {"x": 1})
    late = checkpoint_of({"x": 2})
    late["id"] = "0" + late["id"][1:]
    saver.put(at, late, {"source": "loop", "step": 1}, {})
    assert any("clock runs behind" in text for text in messages(caplog))


# --- restarts -------------------------------------------------------------------------------------------


def restarts(saver) -> int:
    return saver._client.weekly_report().numbers["restarts"]


def test_going_on_after_a_stop_is_a_restart_and_a_new_message_is_none(saver_maker):
    with saver_maker() as saver, pytest.raises(RuntimeError):
        line(saver, ["a", "b", "c"], [], fails_at="b").invoke({"log": []}, CONFIG, durability="sync")
    with saver_maker() as saver:
        assert restarts(saver) == 0
        graph = line(saver, ["a", "b", "c"], [])
        graph.get_state(CONFIG)
        graph.invoke(None, CONFIG)
        assert restarts(saver) == 1
        assert "t stopped after" in saver._client.weekly_report().text
        graph.invoke({"log": ["more"]}, CONFIG)
    with saver_maker() as saver:
        line(saver, ["a", "b", "c"], []).invoke({"log": ["and more"]}, CONFIG)
        assert restarts(saver) == 1


def test_an_answered_question_is_no_restart(saver_maker):
    with saver_maker() as saver:
        approval(saver).invoke({"log": []}, CONFIG)
    with saver_maker() as saver:
        approval(saver).invoke(Command(resume="yes"), CONFIG)
        assert restarts(saver) == 0


@pytest.mark.parametrize("stop", [{"interrupt_before": ["b"]}, {"interrupt_after": ["a"]}])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_going_on_from_a_breakpoint_of_this_process_is_no_restart(saver_maker, stop, durability):
    for _ in ("one saver stops there", "another goes on"):
        with saver_maker() as saver:
            graph = line(saver, ["a", "b", "c"], [])
            given = {"log": []} if graph.get_state(CONFIG).created_at is None else None
            result = graph.invoke(given, CONFIG, durability=durability, **stop)
    assert result == {"log": ["a", "b", "c"]}
    with saver_maker() as saver:
        assert restarts(saver) == 0


def test_looking_at_a_thread_that_is_at_work_is_no_restart(saver):
    seen = []

    class Ran(list):
        def append(self, _):
            seen.extend([saver.get_tuple(CONFIG), saver.get_tuple(CONFIG)])

    line(saver, ["a", "b", "c"], Ran()).invoke({"log": []}, CONFIG)
    assert len(seen) == 6
    assert restarts(saver) == 0


def test_a_thread_that_waits_for_a_person_is_paused(saver):
    approval(saver).invoke({"log": []}, CONFIG)
    assert saver._client.list_checkpoints("t").checkpoints[0].run_status == "paused"
    approval(saver).invoke(Command(resume="yes"), CONFIG)
    assert saver._client.list_checkpoints("t").checkpoints[0].run_status == "running"


# --- retention ------------------------------------------------------------------------------------------


def test_an_evicted_checkpoint_raises_and_an_unknown_one_is_none(keeping_saver_maker):
    with keeping_saver_maker(keep=20) as saver:
        configs = [THREAD]
        for n in range(25):
            configs.append(put(saver, {"n": n}, configs[-1]))
        with pytest.raises(CheckpointGone):
            saver.get_tuple(configs[1])
        assert len([*saver.list(THREAD)]) == 20
        unknown = {"configurable": {**THREAD["configurable"], "checkpoint_id": "9" * 36}}
        assert saver.get_tuple(unknown) is None
        assert values_at(saver) == {"n": 24}


def test_a_delta_channel_of_60_items_survives_keeping_20(keeping_saver_maker):
    from langgraph.channels.delta import DeltaChannel

    def reduce(values, updates):
        return values + [item for update in updates for item in update]

    class State(TypedDict):
        items: Annotated[list, DeltaChannel(reduce, list)]

    def build(saver):
        def add(state: State):
            return {"items": [len(state["items"])]}

        builder = StateGraph(State)
        builder.add_node("add", add)
        builder.add_edge(START, "add")
        builder.add_conditional_edges("add", lambda state: "add" if len(state["items"]) < 60 else END)
        return builder.compile(checkpointer=saver)

    with keeping_saver_maker(keep=20) as saver:
        build(saver).invoke({"items": []}, CONFIG | {"recursion_limit": 100})
    with keeping_saver_maker(keep=20) as saver:
        graph = build(saver)
        assert graph.get_state(CONFIG).values["items"] == [*range(60)]
        newest = [state.values["items"] for state in list(graph.get_state_history(CONFIG))[:20]]
        assert newest == [[*range(n)] for n in range(60, 40, -1)]


def noting(name):
    def node(state: Log):
        return {"log": [name]}

    return node


def calling(saver, turns, *, stateful=False):
    """A graph that calls a subgraph once a superstep."""
    inner = StateGraph(Log)
    inner.add_node("one", noting("in"))
    inner.add_node("two", noting("in"))
    inner.add_edge(START, "one")
    inner.add_edge("one", "two")
    outer = StateGraph(Log)
    outer.add_node("sub", inner.compile(checkpointer=True) if stateful else inner.compile())
    outer.add_edge(START, "sub")
    outer.add_conditional_edges("sub", lambda state: "sub" if len(state["log"]) < turns else END)
    return outer.compile(checkpointer=saver)


def lanes(saver) -> set[str]:
    return {each.config["configurable"]["checkpoint_ns"] for each in saver.list(CONFIG)}


def test_the_namespace_of_a_subgraph_call_goes_with_the_checkpoint_that_started_it(keeping_saver_maker):
    with keeping_saver_maker(keep=20) as saver:
        calling(saver, 2**6).invoke({"log": []}, CONFIG | {"recursion_limit": 200}, durability="sync")
        few = len(lanes(saver))
        for _ in range(30):
            put(saver, {"log": []}, saver.get_tuple(CONFIG).config)
        assert lanes(saver) == {""}
    assert few > 1


def test_the_newest_of_a_namespace_that_lives_on_is_never_evicted(keeping_saver_maker):
    with keeping_saver_maker(keep=20) as saver:
        calling(saver, 2, stateful=True).invoke({"log": []}, CONFIG)
        assert "sub" in lanes(saver)
        for _ in range(30):
            put(saver, {"log": []}, saver.get_tuple(CONFIG).config)
        assert "sub" in lanes(saver)


def test_a_subgraph_call_reads_nothing_that_cannot_be_there(saver, monkeypatch):
    asked = []
    send = saver._client.send
    monkeypatch.setattr(
        saver._client, "send", lambda model, call: asked.append(call.operation.name) or send(model, call)
    )
    calling(saver, 16).invoke({"log": []}, CONFIG, durability="sync")
    assert asked.count("fetch") == 1
