"""What a long agent costs in bytes and in calls, over HTTP, on the service's own plan that keeps 20."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runmemory_langgraph import RunMemorySaver
from tests.benchmarks.graphs import chat, fan_out
from tests.benchmarks.measuring import bytes_of
from tests.service.serving import Plan, new_key_in, running_service

MB = 1_000_000
MESSAGES = 400


def test_an_agent_of_400_messages_sends_2_mb_and_keeps_1_mb(tmp_path: Path) -> None:
    database = tmp_path / "served.db"
    with running_service(f"sqlite:///{database}") as service:
        key = new_key_in(service.database, account="agent", plan=Plan.PRO)
        requests: list[Any] = []
        with RunMemorySaver(service.url, api_key=key) as saver:
            saver._client._transport._pool().event_hooks = {"request": [requests.append]}  # pyright: ignore[reportAttributeAccessIssue]
            config: Any = {"configurable": {"thread_id": "agent"}, "recursion_limit": 500}
            result = chat(MESSAGES, saver, size_bytes=1_600).invoke(
                {"messages": []}, config, durability="sync"
            )
            assert len(result["messages"]) == MESSAGES
            assert len(requests) <= MESSAGES + 5
            assert sum(len(request.content) for request in requests) <= 2 * MB
            kept = len([*saver.list(config)])
        with RunMemorySaver(service.url, api_key=key) as saver:
            found = saver.get_tuple(config)
            assert found is not None
            assert found.checkpoint["channel_values"]["messages"] == result["messages"]
        assert kept == 20
    assert sum(file.stat().st_size for file in tmp_path.glob("served.db*")) <= MB


def test_a_fan_out_of_20_keeps_2_kb_a_superstep(tmp_path: Path) -> None:
    """The 20 results of a superstep are alike, and lie in one compressed row."""
    database = tmp_path / "fan.db"
    sizes: list[int] = []
    for thread in ("first", "second"):  # the first makes the tables
        with RunMemorySaver(f"sqlite:///{database}") as saver:
            config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 50}
            fan_out(20, saver).invoke({"found": [], "rounds": 0}, config, durability="sync")
        sizes.append(bytes_of(database))
    assert sizes[1] - sizes[0] <= 20 * 2_000
