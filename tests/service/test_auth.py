"""Who is asking: a key that is present and wrong is 401, no key is watch mode, never the other way round."""

from __future__ import annotations

import string
from pathlib import Path

import pytest

from runmemory_core.model import Plan
from runmemory_core.service import keys
from tests.service.serving import Service, new_key_in

SAVE = "/api/run/save_checkpoint"


def test_a_new_key_is_well_formed_and_no_two_are_equal() -> None:
    made = {keys.new_key() for _ in range(100)}
    assert len(made) == 100
    assert all(keys.is_well_formed(key) and len(key) == len("rmk_live_") + 38 for key in made)


def test_any_one_mistyped_character_breaks_the_checksum() -> None:
    key = keys.new_key()
    for place in range(len(key)):
        other = next(letter for letter in string.ascii_letters if letter != key[place])
        assert not keys.is_well_formed(key[:place] + other + key[place + 1 :])
    assert not keys.is_well_formed(key + "0")
    assert not keys.is_well_formed(key[:-1])


def test_the_database_holds_no_key(service: Service) -> None:
    files = Path(service.database.removeprefix("sqlite:///")).parent.glob("*")
    held = b"".join(file.read_bytes() for file in files)
    assert keys.digest(service.key) in held
    assert service.key.encode() not in held
    assert service.key.removeprefix(keys.PREFIX)[:8].encode() not in held


@pytest.mark.parametrize("form", ["Bearer {}", "bearer   {}", "{}"])
def test_a_key_is_taken_with_and_without_bearer(service: Service, run_id: str, form: str) -> None:
    headers = {"authorization": form.format(service.key)}
    answer = service.ask("POST", SAVE, {"run_id": run_id, "step": "one", "state": {}}, headers=headers)
    assert (answer.status, answer.json["mode"], answer.json["saved"]) == (200, "acting", True)


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer " + "rmk_live_" + "a" * 38,  # right in shape, wrong in checksum
        pytest.param("Bearer " + keys.new_key(), id="right in itself, and unknown"),
        "Bearer sk-something-else",
        "Bearer",
        "Basic dXNlcjpwYXNz",
        "Bearer two words",
        "Bearer \xff\xfe",
    ],
)
def test_a_wrong_key_is_401_and_never_the_free_plan(
    service: Service, run_id: str, authorization: str
) -> None:
    body = {"run_id": run_id, "step": "one", "state": {}}
    answer = service.ask("POST", SAVE, body, headers={"authorization": authorization})
    assert (answer.status, answer.code) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert authorization.removeprefix("Bearer ") not in answer.json["detail"] or len(authorization) < 8


def test_a_key_reaches_its_own_account_only(service: Service, run_id: str) -> None:
    other = new_key_in(service.database, account="other")
    assert service.tool("save_checkpoint", {"run_id": run_id, "step": "mine", "state": {}}).status == 200
    listed = service.ask("POST", "/api/run/list_checkpoints", {"run_id": run_id}, key=other)
    state = service.ask("GET", f"/api/run/{run_id}/state", key=other)
    assert (listed.status, listed.code) == (404, "not_found")
    assert (state.status, state.code) == (404, "not_found")
    assert service.ask("GET", f"/api/run/{run_id}/state").status == 404


@pytest.mark.parametrize("operation", ["claim", "commit", "fetch", "history", "delete_run", "prune"])
def test_the_storage_interface_is_closed_to_callers_without_a_key(service: Service, operation: str) -> None:
    answer = service.ask("POST", f"/api/store/{operation}", {"run_id": "r"})
    assert (answer.status, answer.code) == (403, "account_required")


def test_a_watch_key_reads_the_storage_interface_and_writes_nothing(service: Service, run_id: str) -> None:
    watch = new_key_in(service.database, plan=Plan.WATCH)
    commit = {"run_id": run_id, "adapter": "test", "operations": [{"op": "put", "key": "1"}]}
    written = service.ask("POST", "/api/store/commit", commit, key=watch)
    assert (written.status, written.code) == (403, "account_required")
    # A graph that begins is told before a node has run; what was kept before a downgrade stays readable.
    assert service.ask("POST", "/api/store/fetch", {"run_id": run_id}, key=watch).status == 403
    assert service.ask("POST", "/api/store/history", {"run_id": run_id}, key=watch).status == 200
