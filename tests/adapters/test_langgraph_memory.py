"""What a saver remembers is bounded, over all threads of a graph and for however long it serves them."""

import gc
from types import FunctionType

from runmemory_langgraph import RunMemorySaver, _encoding
from runmemory_langgraph._encoding import NODE_BYTES
from runmemory_langgraph._remembering import Once
from tests.adapters.test_langgraph_saver import put, values_at
from tests.service.serving import until


def config(name):
    return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}


def test_the_nodes_of_all_threads_together_are_bounded(saver_maker, monkeypatch):
    monkeypatch.setattr(_encoding, "REMEMBERED_NODE_BYTES", 100 * NODE_BYTES)
    with saver_maker() as saver:
        at = {}
        for turn in range(3):
            for name in "abcdef":
                values = {"log": [f"{name} {n} {'x' * 300}" for n in range(30 + turn)]}
                at[name] = put(saver, values, at.get(name, config(name)))
        remembered = [memory for name in "abcdef" if (memory := saver._encoder._memories.find(name))]
        assert 0 < sum(len(memory.nodes) for memory in remembered) <= 100
        for name in "abcdef":
            assert values_at(saver, config(name))["log"][-1].startswith(f"{name} 31 ")


def test_a_list_of_very_many_small_elements_counts_with_all_that_is_kept_of_it(saver):
    kept = []
    saver._encoder._lists.keep = lambda *given: kept.append(given[1])
    put(saver, {"numbers": list(range(100))})
    assert kept[0] > 100 * NODE_BYTES


def test_what_was_told_is_forgotten_in_the_end():
    once = Once(limit=2)
    assert [once.is_new(word) for word in "abacca"] == [True, True, False, True, False, True]
    assert len(once._told) == 2


def test_a_saver_that_is_gone_leaves_nothing_to_do_at_exit(tmp_path):
    def hooks():
        gc.collect()
        functions = [each for each in gc.get_objects() if type(each) is FunctionType]
        ours = [each for each in functions if each.__module__ == "runmemory_langgraph._outbox"]
        return sum(each.__qualname__ == "_weakly.<locals>.call" for each in ours)

    before = hooks()
    for _ in range(5):
        RunMemorySaver(tmp_path / "runs.db").close()
    until(
        lambda: hooks() <= before + 1
    )  # the last one may still be looked at, as may those of a thread that ends
