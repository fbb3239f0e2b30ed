"""Watching: the graph works as with any saver, the service only sees previews."""

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from runmemory_core import Client
from runmemory_langgraph import RunMemorySaver
from tests.adapters.test_langgraph_graphs import CONFIG, approval, line
from tests.adapters.test_langgraph_redaction import messages
from tests.service.serving import Plan, new_key_in


def test_an_answered_question_is_not_asked_again(service, caplog):
    with RunMemorySaver(service.url, watch=True) as saver:
        graph = approval(saver)
        assert graph.invoke({"log": []}, CONFIG)["__interrupt__"]
        assert graph.invoke(Command(resume="yes"), CONFIG) == {"log": ["yes"]}
    told = messages(caplog)
    assert sum("kept in this process and end with it" in text for text in told) == 1
    assert sum("waits for an answer, and only this process" in text for text in told) == 1


@pytest.mark.parametrize("asynchronous", [False, True])
def test_each_step_is_previewed_redacted_and_nothing_is_stored(service, asynchronous):
    seen = []
    config: Any = {"configurable": {"thread_id": f"watched-{asynchronous}"}}
    with RunMemorySaver(service.url, watch=True, on_preview=seen.append) as saver:
        graph = line(saver, ["a", "b"], [])
        given = {"log": []}
        result = asyncio.run(graph.ainvoke(given, config)) if asynchronous else graph.invoke(given, config)
        assert result == {"log": ["a", "b"]}
        assert [preview.state.get("log") for preview in seen] == [None, [], ["a"], ["a", "b"]]
        graph.update_state(config, {"log": ["x"]}, as_node="a")
        assert len([*saver.list(config)]) == 5
    with Client(service.url, api_key=service.key) as client:
        assert not [
            row for row in client.list_checkpoints(limit=100).checkpoints if row.run_id.startswith("watched")
        ]


def test_a_local_saver_keeps_what_watching_does_not(service, tmp_path, caplog):
    with SqliteSaver.from_conn_string(str(tmp_path / "local.db")) as local:
        with RunMemorySaver(service.url, watch=True, local=local) as saver:
            approval(saver).invoke({"log": []}, CONFIG)
        with RunMemorySaver(service.url, watch=True, local=local) as saver:
            assert approval(saver).invoke(Command(resume="yes"), CONFIG) == {"log": ["yes"]}
    assert not any("end with it" in text or "only this process" in text for text in messages(caplog))


def test_a_run_does_not_fail_because_a_preview_does(caplog):
    with RunMemorySaver("http://127.0.0.1:9", watch=True, local=InMemorySaver()) as saver:
        assert line(saver, ["a"], []).invoke({"log": []}, CONFIG) == {"log": ["a"]}
    assert sum("no preview" in text for text in messages(caplog)) == 1


class Unserved:
    """A port that takes connections, counts them and answers nothing."""

    def __init__(self) -> None:
        self.calls = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._refuse, daemon=True).start()

    def _refuse(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.calls += 1
                connection.close()

    def close(self) -> None:
        self._socket.close()


def test_a_service_that_is_away_is_asked_once_and_then_left_alone(caplog):
    nobody = Unserved()
    with RunMemorySaver(nobody.url, watch=True, local=InMemorySaver()) as saver:
        nodes = [*"abcdef"]
        assert line(saver, nodes, []).invoke({"log": []}, CONFIG) == {"log": nodes}
    nobody.close()
    assert nobody.calls == 1
    assert sum("no preview" in text for text in messages(caplog)) == 1


class Odd:
    """Nothing that a preview could show."""


def test_a_value_that_cannot_be_shown_is_told_once_and_the_run_goes_on(service, caplog):
    class State(TypedDict, total=False):
        odd: Any
        last: int

    def odd(state: State) -> dict[str, Any]:
        return {"odd": Odd(), "last": state.get("last", 0) + 1}

    def last(state: State) -> dict[str, Any]:
        return {"last": state.get("last", 0) + 1}

    serde = JsonPlusSerializer(pickle_fallback=True)
    with RunMemorySaver(service.url, watch=True, local=InMemorySaver(serde=serde), serde=serde) as saver:
        graph = StateGraph(State).add_node("make_odd", odd).add_node("do_last", last)
        built = graph.add_edge(START, "make_odd").add_edge("make_odd", "do_last").compile(checkpointer=saver)
        assert built.invoke({"last": 0}, CONFIG)["last"] == 2
    assert sum("no preview: channel 'odd'" in text for text in messages(caplog)) == 1


@pytest.mark.parametrize("asynchronous", [False, True])
def test_going_on_after_a_stop_is_counted_as_a_restart(service, asynchronous, caplog):
    key = new_key_in(service.database, account=f"watched-{asynchronous}", plan=Plan.WATCH)
    local = InMemorySaver()

    def run(given, **options):
        with RunMemorySaver(service.url, api_key=key, watch=True, local=local) as saver:
            graph = line(saver, ["a", "b"], [], **options)
            if asynchronous:
                asyncio.run(graph.ainvoke(given, CONFIG, durability="sync"))
            else:
                graph.invoke(given, CONFIG, durability="sync")

    def restarts():
        with Client(service.url, api_key=key) as client:
            return client.weekly_report().numbers["restarts"]

    with pytest.raises(RuntimeError):
        run({"log": []}, fails_at="b")
    assert restarts() == 0
    run(None)
    assert restarts() == 1
    run({"log": ["a new message"]})
    assert restarts() == 1
    assert not any("no preview" in text for text in messages(caplog))


def test_without_a_key_a_restart_is_no_hindrance(service, caplog):
    local = InMemorySaver()
    with RunMemorySaver(service.url, watch=True, local=local) as saver, pytest.raises(RuntimeError):
        line(saver, ["a", "b"], [], fails_at="b").invoke({"log": []}, CONFIG)
    with RunMemorySaver(service.url, watch=True, local=local) as saver:
        assert line(saver, ["a", "b"], []).invoke(None, CONFIG) == {"log": ["a", "b"]}
    assert not any("no preview" in text for text in messages(caplog))
