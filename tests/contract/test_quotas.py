"""Quotas: exact however many call at once, told beforehand, and no obstacle to reading."""

from __future__ import annotations

import re
from functools import partial

import pytest

from runmemory_core import OverQuota
from runmemory_core.model import Limits, Plan
from runmemory_core.operations.tools import SaveReply
from tests.contract.faces import DAY, Call, Face, HttpFace, at_once, checkpoint_of, served_only

SAVE = "/api/run/save_checkpoint"


@pytest.mark.rule("LIM-01")
def test_over_quota_a_known_run_is_resumed_and_its_restart_recorded(face: Face) -> None:
    client = face.client(limits=Limits(calls_a_day=2))
    client.resume("import")
    client.save_checkpoint("import", "one", state={"a": 1})
    resumed = client.resume("import", idempotency_key="r")
    assert (resumed.attempt, resumed.restart, resumed.usage.used) == (2, True, 2)
    assert checkpoint_of(resumed).state == {"a": 1}
    assert client.resume("import", idempotency_key="r").attempt == 2
    report = client.weekly_report()
    assert report.numbers["restarts"] == 1
    assert "Not seen: saves after all 2 calls were used, on 2026-03-01." in report.text


@pytest.mark.rule("LIM-07")
@pytest.mark.parametrize("plan", [Plan.WATCH, Plan.OWN])
def test_of_40_calls_at_once_at_490_of_500_exactly_10_pass(face: Face, plan: Plan) -> None:
    client = face.client(plan=plan, limits=Limits(calls_a_day=500))
    client.save_checkpoint("first", "one")
    face.change("UPDATE usage SET calls = 490")

    def save(number: int) -> Call:
        return lambda client: client.save_checkpoint(f"{number % 5}", f"step {number}")

    outcomes = at_once(client, [save(number) for number in range(40)])
    assert sum(isinstance(outcome, SaveReply) for outcome in outcomes) == 10
    assert sum(isinstance(outcome, OverQuota) for outcome in outcomes) == 30
    assert client.usage_and_upgrade().usage.used == 500
    kept = client.list_checkpoints(limit=500).checkpoints
    assert len([row for row in kept if row.run_id != "first"]) == 10


@pytest.mark.rule("LIM-08")
def test_from_four_fifths_on_replies_warn(face: Face) -> None:
    client = face.client(limits=Limits(calls_a_day=5))
    notices = [client.save_checkpoint("import", f"step {number}").notices for number in range(5)]
    reset = "until 2026-03-02T00:00:00.000Z"
    assert notices == [
        *([], [], []),
        [f"4 of 5 calls of this UTC day are used; after that saves are refused {reset}"],
        [f"all 5 calls of this UTC day are used: saves are refused {reset}; reading works on"],
    ]
    assert client.resume("import", peek=True).notices == notices[-1]
    assert client.usage_and_upgrade().notices == notices[-1]


@served_only
@pytest.mark.rule("LIM-09")
def test_headers_tell_the_policy_what_is_left_and_when_to_come_again(face: HttpFace) -> None:
    key = face.key(plan=Plan.PRO)
    client = face.client_with(key)
    client.save_checkpoint("import", "one")
    change = {"op": "put", "key": "1", "state": []}
    asked = {
        "/api/run/resume": {"run_id": "import", "peek": True},
        SAVE: {"run_id": "import", "step": "two"},
        "/api/store/commit": {"run_id": "graph", "adapter": "test", "operations": [change]},
    }
    lefts: list[str] = []
    for path, body in asked.items():
        answer = face.ask("POST", path, body, key=key)
        assert answer.headers["ratelimit-policy"] == '"day";q=50000;w=86400'
        found = re.fullmatch(r'"day";r=(\d+);t=(\d+)', answer.headers["ratelimit"])
        assert found
        assert int(found[2]) == DAY // 2 // 1_000
        lefts.append(found[1])
    assert lefts == ["49999", "49998", "49997"]
    face.change("UPDATE usage SET calls = 50000")
    refused = face.ask("POST", SAVE, {"run_id": "import", "step": "three"}, key=key)
    assert (refused.status, refused.code, refused.json["saved"]) == (429, "over_quota", False)
    assert refused.headers["retry-after"] == str(DAY // 2 // 1_000)
    assert refused.headers["ratelimit"] == f'"day";r=0;t={DAY // 2 // 1_000}'
    unlimited = face.ask("POST", SAVE, {"run_id": "import", "step": "one"}, key=face.key(account="mine"))
    assert unlimited.status == 200
    assert not {"ratelimit", "ratelimit-policy"} & unlimited.headers.keys()


@served_only
@pytest.mark.rule("LIM-10")
def test_over_quota_is_never_tried_again(face: HttpFace) -> None:
    client = face.client(limits=Limits(calls_a_day=1))
    client.save_checkpoint("import", "one")
    face.network.requests.clear()
    put = {"op": "put", "key": "a", "state": []}
    calls = [
        partial(client.save_checkpoint, "import", "two"),
        partial(client.store.commit, "graph", "langgraph", operations=[put], parts={}),
    ]
    for call in calls:
        with pytest.raises(OverQuota):
            call()
    assert len(face.network.requests) == len(calls)
