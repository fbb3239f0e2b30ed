"""Graphs of many nodes, namespaces of any length, and values that change at a bad moment."""

from typing import Any

import pytest

from runmemory_langgraph import RunMemorySaver
from tests.adapters.test_langgraph_saver import THREAD, checkpoint_of, put


@pytest.mark.parametrize("watch", [False, True])
def test_none_is_no_thread_that_all_would_share(saver, service, watch):
    chosen = RunMemorySaver(service.url, watch=True) if watch else saver
    nothing: Any = {"configurable": {"thread_id": None, "checkpoint_ns": ""}}
    for call in (
        lambda: put(chosen, {"x": 1}, nothing),
        lambda: chosen.get_tuple(nothing),
        lambda: [*chosen.list(nothing)],
    ):
        with pytest.raises(ValueError, match="no thread_id, or None"):
            call()


def test_an_empty_checkpoint_id_means_the_latest(saver):
    first = put(saver, {"x": 1})
    latest = put(saver, {"x": 2}, first)
    for empty in ("", None):
        asked: Any = {"configurable": THREAD["configurable"] | {"checkpoint_id": empty}}
        assert saver.get_tuple(asked).config == latest
        assert len([*saver.list(asked)]) == 2
        assert len([*saver.list(THREAD, before=asked)]) == 2


def test_a_result_is_sent_again_as_it_was_when_it_came(saver_maker):
    deep: Any = 1
    for _ in range(80):  # too deep to be shown, so the list is kept whole
        deep = [deep]
    given = {"text": "a" * 500}
    listed: list[Any] = [{"text": "b" * 500}, None, b"x", deep]
    known = "y" * 500
    with saver_maker() as other, saver_maker() as saver:
        put(saver, {"known": known})
        other.delete_thread("t")
        made = checkpoint_of({"known": known})
        config: Any = {"configurable": THREAD["configurable"] | {"checkpoint_id": made["id"]}}
        saver.put_writes(config, [("given", given), ("listed", listed), ("known", [known])], "task")
        given["text"] = listed[0]["text"] = "changed since"
        saver.put(
            THREAD, made, {"source": "input", "step": -1, "parents": {}}, {}
        )  # finds that parts are missing
        assert other.get_tuple(config).pending_writes == [
            ("task", "given", {"text": "a" * 500}),
            ("task", "listed", [{"text": "b" * 500}, None, b"x", deep]),
            ("task", "known", [known]),
        ]


@pytest.mark.parametrize("nodes", [600, 6_000])
def test_a_graph_of_very_many_nodes_is_kept_with_all_its_versions(saver, nodes):
    names = ["api_key", "password", *(f"branch:to:a_node_with_a_longer_name_{n}" for n in range(nodes))]
    made = checkpoint_of({"x": 1}, versions={name: saver.get_next_version(None, None) for name in names})
    made["versions_seen"] = {name: {name: version} for name, version in made["channel_versions"].items()}
    made["updated_channels"] = names
    saver.put(THREAD, made, {"source": "loop", "step": 0, "parents": {}}, {})
    assert saver.get_tuple(THREAD).checkpoint == made


def test_namespaces_of_any_length_are_kept_apart_and_come_back_whole(saver):
    above = "|".join(f"a_subgraph_with_a_rather_long_name_{n}:{n:036}" for n in range(40))
    assert len(above) > 2_000
    configs: list[Any] = [
        {"configurable": {"thread_id": "t", "checkpoint_ns": f"{above}|{name}"}} for name in "ab"
    ]
    for config in configs:
        first = put(saver, {"x": config["configurable"]["checkpoint_ns"]}, config)
        assert first["configurable"]["checkpoint_ns"] == config["configurable"]["checkpoint_ns"]
        saver.put_writes(first, [("x", "w")], "task")
        put(saver, {"x": config["configurable"]["checkpoint_ns"]}, first)
    for config in configs:
        found = saver.get_tuple(config)
        namespace = config["configurable"]["checkpoint_ns"]
        assert found.checkpoint["channel_values"] == {"x": namespace}
        assert found.config["configurable"]["checkpoint_ns"] == namespace
        assert found.parent_config["configurable"]["checkpoint_ns"] == namespace
        assert saver.get_tuple(found.parent_config).pending_writes == [("task", "x", "w")]
        assert [each.config["configurable"]["checkpoint_ns"] for each in saver.list(config)] == [
            namespace
        ] * 2
    assert len([*saver.list({"configurable": {"thread_id": "t"}})]) == 4
