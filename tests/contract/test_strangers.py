"""Callers without a key, free keys, and keys that count no longer."""

from __future__ import annotations

import re

import pytest

from runmemory_core import OverQuota, Unauthorized
from runmemory_core.errors import AccountRequired
from runmemory_core.model import Plan
from runmemory_core.service.keys import new_key
from tests.contract.faces import DAY, MINUTE, Face, HttpFace, served_only

FREE_KEY = "/api/keys/free"


@pytest.mark.rule("WAT-10")
def test_without_a_key_only_counts_and_times_are_shown(face: Face) -> None:
    client = face.stranger()
    for number in range(3):
        client.save_checkpoint("neighbour", f"private {number}")
        face.clock.forward(MINUTE)
    client.resume("neighbour")
    counted = {
        "count": 3,
        "oldest_at": "2026-03-01T12:00:00.000Z",
        "newest_at": "2026-03-01T12:02:00.000Z",
    }
    for run_id in (None, "neighbour"):
        listed = client.list_checkpoints(run_id)
        assert listed.checkpoints == []
        assert listed.counted is not None
        assert listed.counted.model_dump() == counted
        assert any("POST /api/keys/free" in notice for notice in listed.notices)
        assert "private" not in repr(listed)
    assert client.list_checkpoints("unknown").counted is None
    resumed = client.resume("another")
    assert resumed.unfinished == []
    assert resumed.unfinished_counted is not None
    assert resumed.unfinished_counted.count == 1
    report = client.weekly_report()
    assert (report.numbers["runs"], report.numbers["restarts"]) == (2, 1)
    assert any("POST /api/keys/free" in notice for notice in report.notices)
    for label in ("private", "neighbour"):
        assert label not in repr(resumed) + repr(report)


@served_only
@pytest.mark.rule("WAT-11")
def test_a_caller_without_a_key_is_a_keyed_hash_of_the_address(face: HttpFace) -> None:
    client = face.stranger()

    def seen_from(address: str, forwarded: str | None = None) -> int:
        face.network.address, face.network.forwarded = address, forwarded
        found = client.list_checkpoints().counted
        return 0 if found is None else found.count

    face.network.address = "2001:db8:1:2::1"
    client.save_checkpoint("import", "one")
    face.network.address = "203.0.113.7"
    client.save_checkpoint("import", "one")
    client.save_checkpoint("import", "two")
    assert [seen_from(f"2001:db8:1:2:{rest}") for rest in (":1", "ffff::9")] == [1, 1]
    assert [seen_from(f"2001:db8:1:{net}::1") for net in (1, 3)] == [0, 0]
    assert [seen_from(address) for address in ("203.0.113.7", "203.0.113.8")] == [2, 0]
    # Only a configured proxy is believed, and of what it sends only the entry that it added itself.
    assert seen_from("203.0.113.9", "203.0.113.7") == 0
    assert seen_from("10.1.1.1", "203.0.113.7") == 2
    assert seen_from("10.1.1.1", "198.51.100.1, 203.0.113.7") == 2
    assert seen_from("10.1.1.1", "203.0.113.7, 198.51.100.1") == 0
    dump = "\n".join(face.dump())
    assert len(set(re.findall("'watch:anonymous:[0-9a-f]{32}'", dump))) == 2
    assert "203.0.113" not in dump
    assert "2001:db8" not in dump


@served_only
@pytest.mark.rule("WAT-12")
def test_the_key_of_addresses_changes_and_the_one_before_is_looked_up(face: HttpFace) -> None:
    def accounts() -> set[str]:
        return set(re.findall("'(watch:anonymous:[0-9a-f]{32})'", "\n".join(face.dump())))

    client = face.stranger()
    client.save_checkpoint("import", "one")
    names = [accounts()]
    for _ in range(3):
        face.clock.forward(8 * DAY)
        for peek in (True, False):
            found = client.resume("import", peek=peek).would_resume
            assert found is not None
            assert found.step == "one"
        names.append(accounts())
    assert [len(found) for found in names] == [1, 1, 1, 1]
    assert len(set.union(*names)) == 4
    # Keys that are looked up no longer are destroyed, and with them whose hash it was.
    assert sum('INTO "address_keys"' in line for line in face.dump()) == 2
    face.clock.forward(16 * DAY)
    assert client.resume("import").would_resume is None


@served_only
@pytest.mark.rule("WAT-13")
def test_a_free_key_comes_at_once_and_shows_labels(face: HttpFace) -> None:
    made = face.ask("POST", FREE_KEY)
    assert (made.status, made.json["plan"], made.headers["cache-control"]) == (201, "watch", "no-store")
    client = face.client_with(made.json["key"])
    assert client.save_checkpoint("mine", "one").mode == "watch"
    client.resume("mine")
    assert [row.step for row in client.list_checkpoints().checkpoints] == ["one"]
    assert 'mine stopped after "one"' in client.weekly_report().text
    assert made.json["key"] not in "\n".join(face.dump())
    assert [face.ask("POST", FREE_KEY).status for _ in range(10)] == [201] * 9 + [429]
    refused = face.ask("POST", FREE_KEY)
    assert refused.code == OverQuota.code
    assert "all 10 free keys of this UTC day are used" in refused.json["detail"]
    face.network.address = "203.0.113.7"
    assert face.ask("POST", FREE_KEY).status == 201
    face.network.address = "127.0.0.1"
    face.clock.forward(DAY)
    assert face.ask("POST", FREE_KEY).status == 201


@served_only
@pytest.mark.rule("KEY-01")
def test_a_wrong_key_is_refused_and_never_the_free_plan(face: HttpFace) -> None:
    revoked = face.key()
    face.revoke(revoked)
    face.revoke(revoked)
    mistyped = revoked[:-1] + ("a" if revoked[-1] != "a" else "b")
    before = face.dump()
    for wrong in (revoked, mistyped, new_key(), "no-key-at-all"):
        client = face.client_with(wrong)
        for call in (client.usage_and_upgrade, lambda c=client: c.save_checkpoint("import", "one")):
            with pytest.raises(Unauthorized) as refusal:
                call()
            assert wrong not in refusal.value.detail
        answer = face.ask("POST", "/api/run/usage_and_upgrade", key=wrong)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert face.dump() == before


@served_only
@pytest.mark.rule("KEY-02")
def test_the_storage_interface_is_closed_to_callers_without_a_key(face: HttpFace) -> None:
    face.client(plan=Plan.OWN).save_checkpoint("import", "one")
    stranger = face.stranger()
    stranger.usage_and_upgrade()
    store = stranger.store
    before = face.dump()
    with pytest.raises(AccountRequired, match="needs an API key"):
        store.fetch("import")
    with pytest.raises(AccountRequired, match="needs an API key"):
        store.delete_run("import")
    assert face.dump() == before
