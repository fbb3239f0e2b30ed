"""Secrets: what is removed, who is told, and how it comes back."""

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from pydantic import SecretStr

from runmemory_core import InvalidRequest
from runmemory_langgraph import RunMemorySaver
from tests.adapters.test_langgraph_saver import THREAD, Login, put, values_at

GITHUB_TOKEN = "ghp_" + "A1b2C3d4E5" * 3 + "abcdef"


def messages(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"redact": "Strict"}, "redact is 'Strict'; it takes True or False or 'strict'"),
        ({"redact": "all"}, "redact is 'all'"),
        ({"redact": None}, "redact is None"),
        ({"redact": 0}, "redact is 0"),
        ({"on_conflict": "rais"}, "on_conflict is 'rais'; it takes 'warn' or 'raise'"),
        ({"on_error": "Raise"}, "on_error is 'Raise'; it takes 'spool' or 'raise'"),
        ({"on_error": ["raise"]}, "on_error is a value of type list"),
        (
            {"allow": ["package.Invoice"]},
            "allow holds 'package.Invoice'; it takes classes, or pairs of module",
        ),
        ({"allow": "package.Invoice"}, "allow holds 'p'"),
        ({"allow": [("package", 1)]}, "allow holds a value of type tuple"),
        ({"allow": Login}, "allow is a class; it takes a list of them"),
    ],
)
def test_an_option_that_is_none_is_refused_in_words(tmp_path, option, words):
    with pytest.raises(InvalidRequest) as refused:
        RunMemorySaver(tmp_path / "runs.db", **option)
    assert str(refused.value).startswith(words)
    assert not (tmp_path / "runs.db").exists()
    RunMemorySaver(tmp_path / "runs.db", redact="strict", allow=[Login, ("package", "Invoice")]).close()


def test_whoever_asks_is_told_of_each_value_that_was_removed(saver_maker):
    told = []
    with saver_maker(on_redact=lambda channel, pointer: told.append((channel, pointer))) as saver:
        put(
            saver,
            {"config": [{"api_key": "a"}, {"login": Login(user="u", token=SecretStr("t"))}], "password": "p"},
        )
    assert sorted(told) == [("config", "/0/api_key"), ("config", "/1/login/token"), ("password", "")]


def test_removed_values_are_put_back_on_loading(saver_maker):
    secrets = {
        ("config", "/0/api_key"): "back",
        ("config", "/-/api_key"): "new",
        ("config", "/1/login/token"): "again",
        ("password", ""): "p",
    }
    given = {
        "config": [{"api_key": "a"}, {"login": Login(user="u", token=SecretStr("t"))}],
        "password": "x",
        "other": "[removed]",
    }
    asked = []

    def restore(channel, pointer):
        asked.append((channel, pointer))
        return secrets.get((channel, pointer))

    with saver_maker(restore=restore) as saver:
        at = put(saver, given)
        saver.put_writes(at, [("config", [{"api_key": "w"}, 2])], "task")
        found = saver.get_tuple(THREAD)
    values = found.checkpoint["channel_values"]
    assert values["config"][0] == {"api_key": "back"}
    assert values["config"][1]["login"].token.get_secret_value() == "again"
    assert values["password"] == "p"
    assert values["other"] == "[removed]"  # nothing is known of it, so it stays
    assert found.pending_writes == [("task", "config", [{"api_key": "new"}, 2])]


@pytest.mark.parametrize("length", [3, 12])
def test_what_was_told_of_a_growing_list_puts_each_secret_back_in_its_place(saver_maker, length):
    vault = {}
    given = []

    def told(channel, pointer):
        vault[channel, pointer] = given[int(pointer.split("/")[1])]["api_key"]

    def add(state):
        given.append({"api_key": f"k{len(state['items'])}"})
        return {"items": given[-1:]}

    class State(TypedDict):
        items: Annotated[list, operator.add]

    def built(saver):
        graph = StateGraph(State).add_node("add", add).add_edge(START, "add")
        graph.add_conditional_edges("add", lambda state: "add" if len(state["items"]) < length else END)
        return graph.compile(checkpointer=saver)

    config: Any = {**THREAD, "recursion_limit": 50}
    with saver_maker(on_redact=told) as saver:
        built(saver).invoke({"items": []}, config, durability="sync")
    assert [*vault] == [("items", f"/{index}/api_key") for index in range(length)]
    with saver_maker(restore=lambda *asked: vault.get(asked)) as saver:
        assert built(saver).get_state(THREAD).values["items"] == given


def test_a_credential_inside_a_text_is_kept_and_warned_of_once_for_each_path(saver_maker, caplog):
    with saver_maker() as saver:
        at = put(saver, {"file": f"token = {GITHUB_TOKEN}"})
        put(saver, {"file": f"changed\ntoken = {GITHUB_TOKEN}"}, at)
        assert GITHUB_TOKEN in values_at(saver)["file"]
    warned = [text for text in messages(caplog) if "/file holds what looks like a credential" in text]
    assert len(warned) == 1
    assert GITHUB_TOKEN not in warned[0]


def test_strict_redaction_removes_credentials_inside_texts(saver_maker, caplog):
    with saver_maker(redact="strict") as saver:
        put(saver, {"file": f"see {GITHUB_TOKEN}, please", "plain": "as it was"})
        assert values_at(saver) == {"file": "see [removed], please", "plain": "as it was"}
    assert any("[removed] instead of the value at /file" in text for text in messages(caplog))


def test_the_first_removal_is_warned_of_with_channel_path_and_ways_out(saver_maker, caplog):
    with saver_maker() as saver:
        at = put(saver, {"config": {"api_key": "a"}})
        put(saver, {"config": {"api_key": "b"}}, at)
    warned = [text for text in messages(caplog) if "/config/api_key" in text]
    assert len(warned) == 1
    assert "runtime context" in warned[0]


def test_metadata_loses_secrets_but_never_what_langgraph_needs(saver_maker):
    with saver_maker() as saver:
        at = put(
            saver,
            {"x": 1},
            run_id="r",
            parents={"": "p"},
            counters_since_delta_snapshot={"a": [1, 2]},
            api_key="s",
        )
        assert saver.get_tuple(at).metadata == {
            "source": "loop",
            "step": 0,
            "run_id": "r",
            "parents": {"": "p"},
            "counters_since_delta_snapshot": {"a": [1, 2]},
            "api_key": "[removed]",
        }


def test_a_saver_without_watch_takes_no_local_saver(tmp_path):
    with pytest.raises(Exception, match="watch=True"):
        RunMemorySaver(f"sqlite:///{tmp_path}/x.db", on_preview=print)
