"""Watching: the graph works as with any saver, the service only sees previews."""

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from runmemory_core import Client
from runmemory_langgraph import RunMemorySaver
from tests.adapters.test_langgraph_graphs import CONFIG, approval, line
from tests.adapters.test_langgraph_redaction import messages


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
