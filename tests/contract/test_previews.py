"""Watch mode previews what acting would do, refusals too."""

from __future__ import annotations

import pytest

from runmemory_core import NotFound
from runmemory_core.model import Plan
from tests.contract.faces import Face


@pytest.mark.rule("WAT-14")
def test_a_save_that_acting_would_refuse_is_previewed_as_refused(face: Face) -> None:
    client = face.client(plan=Plan.WATCH)
    client.save_checkpoint("import", "one", state={"a": 1})
    client.resume("import")
    client.save_checkpoint("import", "two", state={"a": 2}, attempt=2, status="finished")
    used = client.usage_and_upgrade().usage.used
    late = client.save_checkpoint("import", "late", state={"a": 3})
    assert late.outcome == (
        'Watch-only: nothing stored, and with Pro "late" would not be saved: run import is finished: nothing more is '
        "saved; resume with start_over=true begins it anew"
    )
    assert (late.code, late.saved, late.would_save, late.usage.used) == ("would_refuse", False, None, used)
    stale = client.save_checkpoint("import", "stale", attempt=1)
    assert 'with Pro "stale" would not be saved: another worker resumed this run at' in stale.outcome
    unknown = client.save_checkpoint("other", "one", attempt=3)
    assert unknown.code == "would_refuse"
    elsewhere = client.save_checkpoint("third", "one", expected_seq=77)
    assert "run third is at seq 0, not 77" in elsewhere.outcome
    assert {row.step for row in client.list_checkpoints("import").checkpoints} == {"one", "two"}


@pytest.mark.rule("WAT-15")
def test_a_preview_without_a_state_says_that_the_previous_one_would_stay(face: Face) -> None:
    client = face.client(plan=Plan.WATCH)
    client.save_checkpoint("import", "one", state={"a": "previous"})
    reply = client.save_checkpoint("import", "two")
    assert reply.notices == [
        "no state was given: acting, the previous one would stay; watch mode keeps none that it could show"
    ]
    assert reply.would_save is not None
    assert (reply.would_save.bytes, reply.would_save.state) == (len('{"a":"previous"}'), None)
    first = client.save_checkpoint("new", "one")
    assert first.would_save is not None
    assert (first.notices, first.would_save.state) == ([], {})


@pytest.mark.rule("WAT-16")
def test_a_further_page_of_done_begins_no_attempt(face: Face) -> None:
    client = face.client(plan=Plan.WATCH)
    client.save_checkpoint("import", "one", done=["a"])
    before = client.usage_and_upgrade().usage.used
    assert client.resume("import", done_cursor=1).attempt == 1
    assert client.resume("import", peek=True).attempt == 1
    assert client.usage_and_upgrade().usage.used == before


@pytest.mark.rule("WAT-16")
def test_a_refused_resume_begins_no_attempt(face: Face) -> None:
    client = face.client(plan=Plan.WATCH)
    client.save_checkpoint("import", "one", done=["a"])
    with pytest.raises(NotFound, match="watch mode stores none"):
        client.resume("import", seq=1)
    assert client.resume("import", peek=True).attempt == 1
