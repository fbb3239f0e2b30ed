"""What a spool holds, run by run, as the commits that carry it to a service. Functions over an open transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from runmemory_core import parts
from runmemory_core.engine._states import clear_run
from runmemory_core.model import DEFAULT_ACCOUNT
from runmemory_core.policy.json_rules import write
from runmemory_core.store import Tx
from runmemory_core.store.codec import unpack

Change = dict[str, Any]
_MOST_CHANGES = 1_000


@dataclass(frozen=True, slots=True)
class SpooledRun:
    """A run's checkpoints in order, each with the writes that belong to it, and writes ahead of all of them."""

    run_id: str
    adapter: str
    ahead: list[Change]
    puts: list[list[Change]]

    def commits(self) -> Iterator[list[Change]]:
        """The changes of each commit to send."""
        for start in range(0, len(self.ahead), _MOST_CHANGES):
            yield self.ahead[start : start + _MOST_CHANGES]
        yield from self.puts


def run_ids(tx: Tx) -> list[str]:
    """The runs that have something to send, in order of their beginning."""
    account_id = _account(tx)
    return [row["run_id"] for row in tx.all("runs_since", account_id=account_id, since=0)]


def waiting(tx: Tx) -> tuple[int, int, int]:
    """How many runs have something to send, how many checkpoints, and since when the first of them waits."""
    rows = tx.all("runs_since", account_id=_account(tx), since=0)
    return len(rows), sum(row["kept"] for row in rows), min((row["created_at"] for row in rows), default=0)


def read_run(tx: Tx, run_id: str) -> SpooledRun:
    """Everything a run has to send."""
    run = tx.one("run", account_id=_account(tx), run_id=run_id)
    if run is None:
        return SpooledRun(run_id, "", [], [])
    ids = {"account_id": run["account_id"], "run": run["run"]}
    lanes = {row["lane"]: row["name"] for row in tx.all("lanes", **ids)}
    writes: dict[tuple[str, str], list[Change]] = {}
    for row in tx.all("run_writes", **ids):
        place = (row["lane_name"], row["key"])
        change = {"op": "writes", "lane": place[0], "key": place[1]}
        writes.setdefault(place, []).extend(change | task for task in from_json(unpack(row["body"])))
    puts: list[list[Change]] = []
    attempt = 1
    for row in tx.all("run_checkpoints", **ids):
        lane = lanes[row["lane"]]
        change = _put(row, lane) | {"restart": row["attempt"] > attempt}
        attempt = max(attempt, row["attempt"])
        puts.append([change, *writes.pop((lane, row["key"]), [])])
    ahead = [change for each in writes.values() for change in each]
    if last := puts[-1] if puts else ahead:
        last[-1]["status"] = run["status"]
    return SpooledRun(run_id, run["adapter"], ahead, puts)


def _put(row: Any, lane: str) -> Change:
    change = {"op": "put", "lane": lane, "key": row["key"], "step": row["step"], "status": "running"}
    if row["parent"] is not None:
        change["parent"] = row["parent"]
    return change | {"metadata": from_json(row["metadata"])} | from_json(unpack(row["body"]))


def texts_of(tx: Tx, run_id: str, addresses: Iterable[str]) -> dict[str, str]:
    """The texts of parts."""
    run = tx.one("run", account_id=_account(tx), run_id=run_id)
    ids = {"account_id": run["account_id"], "run": run["run"]}
    rows = tx.all("parts", **ids, addresses=write(list(addresses)))
    return {row["address"]: unpack(row["body"]) for row in rows}


def writes_ahead(tx: Tx, run_id: str, lane: str, key: str) -> tuple[list[Change], dict[str, str]]:
    """The writes that wait for a checkpoint the service holds, and the texts of their parts."""
    found = [each for each in read_run(tx, run_id).ahead if (each["lane"], each["key"]) == (lane, key)]
    if not found:
        return [], {}
    nodes = [node for each in found for _, _, node in each["writes"]]
    texts = texts_of(tx, run_id, {address for node in nodes for address in parts.direct_addresses(node)})
    inside = {
        address
        for node in nodes
        for page in parts.pages(node)
        for address in parts.page_addresses(texts[page])
    }
    return found, texts | texts_of(tx, run_id, inside)


def forget_if_same(tx: Tx, run: SpooledRun) -> bool:
    """Remove a run unless something was added to it since it was read."""
    if read_run(tx, run.run_id) != run:
        return False
    forget(tx, run.run_id)
    return True


def forget(tx: Tx, run_id: str) -> None:
    """Remove a run."""
    row = tx.one("run", account_id=_account(tx), run_id=run_id)
    if row is not None:
        ids = {"account_id": row["account_id"], "run": row["run"]}
        clear_run(tx, **ids)
        tx.run("forget_run", **ids)


def _account(tx: Tx) -> int:
    row = tx.one("account_by_name", name=DEFAULT_ACCOUNT)
    return 0 if row is None else int(row["account_id"])
