"""What a RunMemorySaver can be told: secrets, allowed classes, conflicts, health, watching, moving over."""

import tempfile
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from runmemory_langgraph import RunMemorySaver


@dataclass
class Invoice:
    """A class of one's own."""

    number: int


class State(TypedDict):
    """A counter."""

    step: int


def add(state: State) -> State:
    return {"step": state["step"] + 1}


builder = StateGraph(State)
builder.add_node("add", add)
builder.add_edge(START, "add")
config: Any = {"configurable": {"thread_id": "t"}}

folder = tempfile.TemporaryDirectory()
path = f"{folder.name}/runs.db"
other_saver = InMemorySaver()  # stands for the saver that was used before

# [start:secrets]
vault = {("login", "/password"): "from the vault"}

saver = RunMemorySaver(
    f"sqlite:///{path}",
    restore=lambda channel, pointer: vault.get((channel, pointer)),  # on load; None leaves "[removed]"
    on_redact=lambda channel, pointer: print(f"not saved: {channel}{pointer}"),
)
# [end:secrets]
saver.close()

# [start:options]
saver = RunMemorySaver(
    f"sqlite:///{path}",
    allow=[Invoice],  # may be built on loading, beside what may be anyway
    on_conflict="raise",  # a second worker on one thread is refused instead of warned of
    keep=20,  # of each thread and namespace
)
# [end:options]

# [start:health]
saver.setup()  # raises when the store does not answer or refuses the key
if not saver.health.ok:
    print(saver.health.problem, saver.health.spooled_checkpoints, "checkpoints wait in", saver.health.spool)
# [end:health]


# [start:moving]
def saver_of(thread: Any) -> Any:
    """Threads that began with the other saver end with it; new ones are Run Memory's."""
    return other_saver if other_saver.get_tuple(thread) is not None else saver


graph = builder.compile(checkpointer=saver_of(config))
# [end:moving]
graph.invoke({"step": 0}, config)


# [start:copying]
def copy_over(thread_id: str) -> None:
    """Copy a thread of the other saver to Run Memory."""
    found: Any = other_saver.list({"configurable": {"thread_id": thread_id}})
    for each in sorted(found, key=lambda each: each.checkpoint["id"]):
        lane = each.config["configurable"]["checkpoint_ns"]
        parent: Any = each.parent_config or {"configurable": {"thread_id": thread_id, "checkpoint_ns": lane}}
        saver.put(parent, each.checkpoint, each.metadata, each.checkpoint["channel_versions"])
        results: list[Any] = each.pending_writes or []
        for task_id, writes in groupby(results, key=itemgetter(0)):
            saver.put_writes(each.config, [(channel, value) for _, channel, value in writes], task_id)


# [end:copying]
other_graph = builder.compile(checkpointer=other_saver, interrupt_after=["add"])
other: Any = {"configurable": {"thread_id": "other"}}
other_graph.invoke({"step": 0}, other)
copy_over("other")
copied = builder.compile(checkpointer=saver)
assert copied.get_state(other) == other_graph.get_state(other)
assert list(copied.get_state_history(other)) == list(other_graph.get_state_history(other))
saver.close()
folder.cleanup()
