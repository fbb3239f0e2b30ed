"""What is remembered between two loads of a thread, and that nobody can tell but by the time it takes."""

from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from runmemory_langgraph import DecodingRefused, RunMemorySaver
from runmemory_langgraph._bridge import head_bytes, list_of_packed
from runmemory_langgraph._remembering import Remembered
from tests.adapters.test_langgraph_saver import put, values_at

CHAT = [HumanMessage(f"question {n} " * 30, id=str(n)) for n in range(40)]


def parts_fetched(saver: RunMemorySaver) -> list[int]:
    """Counts the parts of each fetch from now on."""
    counts: list[int] = []
    store: Any = saver._store
    fetch = store.fetch

    def counted(*given: Any, **named: Any) -> Any:
        reply = fetch(*given, **named)
        counts.append(len(reply.parts))
        return reply

    store.fetch = counted
    return counts


def test_a_second_load_fetches_only_what_is_new(saver_maker):
    with saver_maker() as writer, saver_maker() as reader:
        counts = parts_fetched(reader)
        put(writer, {"messages": CHAT})
        assert values_at(reader)["messages"] == CHAT
        longer = [*CHAT, AIMessage("answer " * 50, id="a")]
        put(writer, {"messages": longer})
        assert values_at(reader)["messages"] == longer
        put(writer, {"messages": longer[:5], "other": CHAT[39], "nested": [CHAT[:2]]})
        assert values_at(reader) == {"messages": longer[:5], "other": CHAT[39], "nested": [CHAT[:2]]}
    assert counts[0] == 41  # a page beside the messages
    assert counts[1] == 2  # the page and the answer
    assert counts[2] == 1  # what is nested: the rest was in the second load


def test_two_loads_share_no_object(saver):
    put(saver, {"messages": CHAT})
    first = values_at(saver)["messages"]
    first[3].content = "changed in place"
    assert values_at(saver)["messages"] == CHAT


def test_a_list_with_bytes_and_texts_of_any_kind_is_loaded_alike_each_time(saver):
    value = ["t" * 300, b"\x00" * 300, None, {"b": b"x" * 300}, 2**60, ["n" * 300], float("inf")]
    put(saver, {"value": value, "bytes": b"\x00" * 300, "text": "t" * 300})
    for _ in range(3):
        assert values_at(saver) == {"value": value, "bytes": b"\x00" * 300, "text": "t" * 300}


def test_what_was_removed_is_put_back_by_each_load(saver_maker):
    given = [{"api_key": "x", "text": "t" * 300}]
    with saver_maker(restore=lambda _channel, _pointer: "back") as saver:
        put(saver, {"config": given})
        for _ in range(2):
            assert values_at(saver)["config"] == [{"api_key": "back", "text": "t" * 300}]


def test_a_class_is_judged_at_each_load_also_when_its_bytes_are_known(saver, monkeypatch):
    put(saver, {"messages": CHAT})
    assert values_at(saver)["messages"] == CHAT
    monkeypatch.setattr("runmemory_langgraph._decoding._SAFE_TYPES", frozenset())
    monkeypatch.delattr("langchain_core.messages.human.HumanMessage")
    with pytest.raises(DecodingRefused, match="HumanMessage"):
        values_at(saver)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 65_535, 65_536])
def test_a_list_of_packed_values_is_the_packed_list(count):
    packed = ormsgpack.packb([None] * count)
    assert list_of_packed([b"\xc0"] * count) == packed
    assert packed[head_bytes(count) :] == b"\xc0" * count


def test_a_list_that_grew_shrank_or_changed_in_place_comes_back_as_it_is_now(saver_maker):
    changed = HumanMessage("changed " * 50, id="7")
    states = [CHAT[:20], CHAT, CHAT[:30], [*CHAT[:7], changed, *CHAT[8:]], CHAT[5:], CHAT, []]
    with saver_maker() as writer, saver_maker() as reader:
        for state in states:
            put(writer, {"messages": state})
            assert values_at(reader)["messages"] == state
        growing = list(CHAT)
        put(writer, {"messages": growing})
        growing[3] = changed  # the very same list
        growing.append(changed)
        put(writer, {"messages": growing})
        assert values_at(reader)["messages"] == growing


def test_a_deleted_thread_is_forgotten(saver):
    put(saver, {"messages": CHAT})
    values_at(saver)
    saver.delete_thread("t")
    counts = parts_fetched(saver)
    put(saver, {"messages": CHAT})
    assert values_at(saver)["messages"] == CHAT
    assert counts == [41]


def test_what_is_remembered_is_bounded_by_bytes_and_the_least_used_goes_first():
    remembered: Remembered[str] = Remembered(limit_bytes=10)
    for name in "abc":
        remembered.keep(f"value {name}", 4, name, "lane")
    assert [remembered.find(name, "lane") for name in "abc"] == [None, "value b", "value c"]
    remembered.find("b", "lane")
    remembered.keep("value d", 4, "d", "lane")
    assert [remembered.find(name, "lane") for name in "bcd"] == ["value b", None, "value d"]
    remembered.keep("shorter", 1, "d", "lane")
    remembered.keep("value e", 5, "e", "lane")
    assert remembered.find("b", "lane") == "value b"
    remembered.keep("too long", 11, "f", "lane")
    assert [remembered.find(name, "lane") for name in "bdef"] == [None] * 4
