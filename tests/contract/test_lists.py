"""list_checkpoints, weekly_report and usage_and_upgrade."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from runmemory_core import Client, InvalidRequest, NotFound
from runmemory_core.model import LIMITS, Limits, Plan, RunStatus
from tests.contract.commits import put
from tests.contract.faces import DAY, HOUR, MINUTE, Face

RUN_STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)


@pytest.mark.rule("LST-01")
def test_one_runs_checkpoints_are_listed_newest_first(client: Client) -> None:
    for number in range(1, 6):
        client.save_checkpoint("import", f"step {number}", state={"n": number})
        client.save_checkpoint("other", f"step {number}")
    page = client.list_checkpoints("import", limit=2)
    assert page.checkpoints[0].model_dump() == {
        "run_id": "import",
        "seq": 5,
        "step": "step 5",
        "bytes": len('{"n":5}'),
        "saved_at": "2026-03-01T12:00:00.000Z",
        "expires_at": None,
        "lane": "",
        "run_status": "running",
    }
    seqs: list[int] = []
    cursor = None
    while True:
        page = client.list_checkpoints("import", limit=2, cursor=cursor)
        seqs += [row.seq for row in page.checkpoints]
        if (cursor := page.cursor) is None:
            break
    assert seqs == [5, 4, 3, 2, 1]
    with pytest.raises(NotFound):
        client.list_checkpoints("unknown")


@pytest.mark.rule("LST-02")
def test_all_runs_checkpoints_are_listed_newest_first(face: Face, client: Client) -> None:
    saved: list[tuple[str, int]] = []
    for number in range(3):
        for run_id in ("c", "a", "b"):
            client.save_checkpoint(run_id, f"step {number}")
            saved.append((run_id, number + 1))
        face.clock.forward(MINUTE)
    for limit in (1, 3, 4, 500):
        listed: list[tuple[str, int]] = []
        cursor = None
        while True:
            page = client.list_checkpoints(limit=limit, cursor=cursor)
            assert len(page.checkpoints) <= limit
            listed += [(row.run_id, row.seq) for row in page.checkpoints]
            if (cursor := page.cursor) is None:
                break
        assert sorted(listed) == sorted(saved)
        assert [seq for _, seq in listed] == [3, 3, 3, 2, 2, 2, 1, 1, 1]


@pytest.mark.rule("LST-02")
def test_a_cursor_that_no_reply_gave_is_refused(client: Client) -> None:
    client.save_checkpoint("import", "one")
    cursors = ("x", "5", "-1.1.1", "1.1", "9" * 60, "1.1.1.1", "٣.1.1")
    for run_id, cursor in product(("import", None), cursors):
        with pytest.raises(InvalidRequest, match="cursor is not one that a reply gave"):
            client.list_checkpoints(run_id, cursor=cursor)


@pytest.mark.rule("LST-03")
def test_unfinished_leaves_out_finished_runs_only(client: Client) -> None:
    client.save_checkpoint("waiting", "ask", status="paused")
    client.save_checkpoint("broken", "fail", status="failed")
    client.save_checkpoint("going", "on")
    for number in range(5):
        client.save_checkpoint(f"ended {number}", "end", status="finished")
    listed = client.list_checkpoints(unfinished=True, limit=3).checkpoints
    assert {row.run_id: row.run_status for row in listed} == {
        "waiting": "paused",
        "broken": "failed",
        "going": "running",
    }
    assert client.list_checkpoints("ended 1", unfinished=True).checkpoints == []
    assert len(client.list_checkpoints("going", unfinished=True).checkpoints) == 1


@pytest.mark.rule("LST-04")
def test_no_run_hides_another_in_the_list_of_all(face: Face, client: Client) -> None:
    client.save_checkpoint("quiet", "one")
    for number in range(30):
        face.clock.forward(MINUTE)
        client.save_checkpoint("busy", f"step {number}")
    rows = client.list_checkpoints().checkpoints
    assert [(row.run_id, row.seq) for row in rows] == [
        *(("busy", seq) for seq in (30, 29, 28, 27, 26)),
        ("quiet", 1),
    ]
    reply = client.list_checkpoints(limit=4)
    assert "the newest 5 of each" in reply.outcome
    rest = client.list_checkpoints(limit=4, cursor=reply.cursor)
    assert [row.run_id for row in rest.checkpoints] == ["busy", "quiet"]


@pytest.mark.rule("REP-01")
def test_the_report_counts_a_week_and_names_each_crash_point(face: Face, client: Client) -> None:
    client.save_checkpoint("long ago", "one")
    client.resume("long ago")
    face.clock.forward(7 * DAY + 1)
    client.save_checkpoint("import", "one")
    face.clock.forward(HOUR)
    client.save_checkpoint("import", "two", status="failed", error="KeyError: 'price'")
    face.clock.forward(HOUR)
    client.resume("import")
    client.save_checkpoint("import", "three", status="finished")
    client.resume("silent")
    client.resume("silent")
    before = face.dump()
    report = client.weekly_report()
    assert face.dump() == before
    assert report.numbers == {
        "runs": 2,
        "finished": 1,
        "checkpoints": 3,
        "restarts": 2,
        "abandoned": 0,
        "asks": 1,
        "skipped": 0,
        "repeated": 0,
        "new": 1,
        "not_repeated_ms": HOUR,
    }
    assert (
        "import stopped after \"two\" on 2026-03-08 at 13:00 UTC: KeyError: 'price'. About 60 minutes of work was lost."
        in report.text
    )
    assert "silent stopped before its first checkpoint on 2026-03-08 at 14:00 UTC." in report.text
    assert "long ago" not in report.text


@pytest.mark.rule("REP-02")
def test_without_anything_observed_the_numbers_are_zero(client: Client) -> None:
    assert set(client.weekly_report().numbers.values()) == {0}


@pytest.mark.rule("REP-04")
def test_a_run_that_is_silent_for_a_day_is_abandoned_an_adapters_never(face: Face, client: Client) -> None:
    for status in RUN_STATUSES:
        client.save_checkpoint(status, "one", status=status)
    client.store.commit("graph", "langgraph", operations=[put("a", {}, {})], parts={})
    face.clock.forward(DAY - 1)
    client.save_checkpoint("active", "one")
    assert client.weekly_report().numbers["abandoned"] == 0
    face.clock.forward(1)
    assert client.weekly_report().numbers["abandoned"] == 1
    client.save_checkpoint("running", "two")
    assert client.weekly_report().numbers["abandoned"] == 0


@pytest.mark.rule("USE-01")
def test_each_plan_shows_its_own_limits_and_the_way_to_more(face: Face) -> None:
    shown = {plan: face.client(account=plan.value, plan=plan).usage_and_upgrade() for plan in Plan}
    assert {plan: reply.usage.limit for plan, reply in shown.items()} == {
        Plan.WATCH: 500,
        Plan.PRO: 50_000,
        Plan.OWN: None,
    }
    assert {plan: reply.limits["keep"] for plan, reply in shown.items()} == {
        Plan.WATCH: None,
        Plan.PRO: 20,
        Plan.OWN: None,
    }
    assert shown[Plan.PRO].limits["kept_for_ms"] == 30 * DAY
    assert shown[Plan.WATCH].limits["watched_for_ms"] == 8 * DAY
    assert "https://memory.cloudforbots.com" in shown[Plan.WATCH].upgrade
    for reply in shown.values():
        assert reply.usage.reset_at == "2026-03-02T00:00:00.000Z"
        assert "keys issue" in reply.upgrade


@pytest.mark.rule("USE-01")
def test_usage_shows_plan_and_limits_and_is_not_metered(face: Face) -> None:
    client = face.client(plan=Plan.PRO)
    client.save_checkpoint("import", "one")
    client.usage_and_upgrade()
    reply = client.usage_and_upgrade()
    assert (reply.plan, reply.usage.used, reply.usage.remaining) == ("pro", 1, 49_999)
    assert reply.limits["calls_a_day"] == LIMITS[Plan.PRO].calls_a_day == 50_000
    assert reply.limits["keep"] == 20
    assert reply.upgrade
    assert face.client(account="mine").usage_and_upgrade().usage.limit is None


@pytest.mark.rule("LIM-04")
def test_rows_expire_so_long_after_the_runs_last_activity(face: Face) -> None:
    client = face.client(limits=Limits(kept_for_ms=30 * DAY))
    client.save_checkpoint("import", "one")
    face.clock.forward(DAY)
    client.save_checkpoint("import", "two")
    rows = client.list_checkpoints("import").checkpoints
    assert [row.expires_at for row in rows] == ["2026-04-01T12:00:00.000Z"] * 2


@pytest.mark.rule("LST-02")
def test_pages_of_all_runs_are_whole_however_runs_were_resumed_and_clocks_were_set(
    face: Face, client: Client
) -> None:
    saved: list[tuple[str, int]] = []
    for number in range(1, 4):
        for name in range(7):
            client.save_checkpoint(f"{name}", f"step {number}")
            saved.append((f"{name}", number))
            face.clock.forward(MINUTE)
    for name in ("2", "0", "empty"):
        client.resume(name)  # active last, though others saved later
    face.clock.forward(-2 * HOUR)
    client.save_checkpoint("5", "step 4")
    saved.append(("5", 4))
    for limit in (1, 2, 5, 500):
        listed: list[tuple[str, int]] = []
        cursor = None
        while True:
            page = client.list_checkpoints(limit=limit, cursor=cursor)
            listed += [(row.run_id, row.seq) for row in page.checkpoints]
            if (cursor := page.cursor) is None:
                break
        assert sorted(listed) == sorted(saved)
        others = [pair for pair in listed if pair[0] != "5"]
        assert others == sorted(others, key=saved[::-1].index)
