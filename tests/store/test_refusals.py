"""Files that cannot be used, and disks that are full: clear words, and nothing half-written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from runmemory_core import Client, StoreError
from runmemory_core.errors import StoreReadOnly, StoreTooNew
from runmemory_core.store import open_store
from runmemory_core.store._queries import migrations
from runmemory_core.store.sqlite import APPLICATION_ID, SqliteStore
from tests.store.processes import run

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="mounts and users as Linux has them")


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_a_database_of_a_newer_format_is_refused_and_stays_as_it_is(
    tmp_path: Path, journal_mode: str
) -> None:
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal_mode}")
        connection.execute("CREATE TABLE tomorrow (a)")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    known = len(migrations("sqlite"))
    with pytest.raises(
        StoreTooNew, match=f"has format 99; this release knows formats up to {known}: upgrade"
    ) as refusal:
        Client(f"sqlite:///{path}")
    assert refusal.value.facts == {"found": 99, "known": known}
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.glob("runs.db*")] == ["runs.db"]


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
@pytest.mark.parametrize("user_version", [0, 1, 99])
def test_another_programs_database_is_refused_and_stays_as_it_is(
    tmp_path: Path, journal_mode: str, user_version: int
) -> None:
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal_mode}")
        connection.execute("CREATE TABLE accounts (name)")
        connection.execute(f"PRAGMA user_version = {user_version}")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"history\.db is another program's SQLite database: name another"):
        Client(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_file_is_marked_as_ours(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "runs.db").close()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


def test_a_file_that_is_no_database_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    text = b"not a database, but longer than the header of one would be\n" * 20
    path.write_bytes(text)
    with pytest.raises(StoreError, match="is not a healthy SQLite database"):
        Client(f"sqlite:///{path}")
    assert path.read_bytes() == text


def test_a_path_that_can_hold_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match=f"^{tmp_path}/file/below: "):
        SqliteStore(tmp_path / "file" / "below")
    with pytest.raises(StoreReadOnly, match=f"^{tmp_path} cannot be written: "):
        SqliteStore(tmp_path)


@pytest.mark.parametrize(
    "url", ["sqlite:", "sqlite://", "sqlite:///", "sqlite://runs.db", "mysql:///runs.db", "runs.db"]
)
def test_a_url_that_names_no_file_is_refused_with_the_ones_that_do(url: str) -> None:
    with pytest.raises(StoreError, match=r"use sqlite:///relative\.db or sqlite:////absolute\.db"):
        open_store(url)


@pytest.mark.parametrize("name", ["a b.db", "ü?x=1.db", "100%25#1.db", "a&mode=memory.db"])
def test_any_name_of_a_file_is_that_file(tmp_path: Path, name: str) -> None:
    with Client(f"sqlite:///{tmp_path / name}") as client:
        client.save_checkpoint("import", "one")
        assert client.where == str(tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_new_file_and_its_folder_are_the_users_own(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "folder" / "runs.db").close()
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "folder" / "runs.db").stat().st_mode & 0o777 == 0o600


# --- as somebody who may not write ----------------------------------------------------------------------

AS_NOBODY = """
import os, sys
from runmemory_core import Client
from runmemory_core.errors import StoreReadOnly

# Everything is loaded before this process may no longer read the files of its owner.
with Client(f"sqlite:///{sys.argv[1]}") as client:
    client.resume("import", peek=True)
os.chmod(sys.argv[2], int(sys.argv[3], 8))
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    Client(f"sqlite:///{sys.argv[1]}")
except StoreReadOnly as refusal:
    print(refusal)
"""


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that everybody can enter, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@on_linux
@pytest.mark.parametrize(("unwritable", "mode"), [("runs.db", "444"), (".", "555")])
def test_a_file_or_folder_that_may_not_be_written_is_said_so(
    public_folder: Path, unwritable: str, mode: str
) -> None:
    path = public_folder / "runs.db"
    with Client(f"sqlite:///{path}") as client:
        client.save_checkpoint("import", "one")
    path.chmod(0o666)
    before = path.read_bytes()
    printed = run(AS_NOBODY, path, public_folder / unwritable, mode)
    assert (
        printed == f"{path} cannot be written: check its permissions and its folder's, or name another file\n"
    )
    assert path.read_bytes() == before
    assert [file.name for file in public_folder.iterdir()] == ["runs.db"]


# --- on a disk of its own -------------------------------------------------------------------------------

OWN_MOUNTS = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--mount")

ON_A_READ_ONLY_DISK = """
import subprocess, sys
from runmemory_core import Client
from runmemory_core.errors import StoreReadOnly

subprocess.run(["mount", "-t", "tmpfs", "tmpfs", sys.argv[1]], check=True)
with Client(f"sqlite:///{sys.argv[1]}/runs.db") as client:
    client.save_checkpoint("import", "one")
subprocess.run(["mount", "-o", "remount,ro", sys.argv[1]], check=True)
for name in ("runs.db", "new.db"):
    try:
        Client(f"sqlite:///{sys.argv[1]}/{name}")
    except StoreReadOnly as refusal:
        print("refused", name)
"""

ON_A_FULL_DISK = """
import json, os, subprocess, sys
from runmemory_core import Client
from runmemory_core.errors import StoreFull

folder = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=True)

def fill():
    with open(f"{folder}/filler", "ab", buffering=0) as filler:
        for size in (65_536, 4_096, 512, 1):
            try:
                while True:
                    filler.write(b"x" * size)
            except OSError:
                pass

def holds(client, count):
    reply = client.resume("import", peek=True)
    assert (reply.checkpoint.seq, reply.done_count) == (count, count), reply
    assert reply.checkpoint.state["n"] == count

client = Client(f"sqlite:///{folder}/runs.db")
count = 0
for text in ("x", os.urandom(20_000).hex()):
    client.save_checkpoint("import", f"step {count + 1}", state={"n": count + 1}, done=[count + 1])
    count += 1
    fill()
    try:
        while count < 1_000:
            n = count + 1
            client.save_checkpoint("import", f"step {n}", state={"n": n, "text": text}, done=[n])
            count += 1
    except StoreFull as refusal:
        print(refusal)
    holds(client, count)
    with Client(f"sqlite:///{folder}/runs.db") as another:
        holds(another, count)
    os.unlink(f"{folder}/filler")
    client.save_checkpoint("import", "there is room again", state={"n": count + 1}, done=[count + 1])
    count += 1
    holds(client, count)
client.close()

fill()
for name in ("runs.db", "new.db"):
    try:
        Client(f"sqlite:///{folder}/{name}")
    except StoreFull:
        print("full", name)
os.unlink(f"{folder}/filler")
with Client(f"sqlite:///{folder}/runs.db") as client, Client(f"sqlite:///{folder}/new.db") as new:
    holds(client, count)
    new.save_checkpoint("import", "one")
    rows = client.list_checkpoints("import", limit=500).checkpoints
    print("seqs", [row.seq for row in rows] == list(range(count, 0, -1)))
"""


@on_linux
def test_a_read_only_disk_is_said_so(tmp_path: Path) -> None:
    assert run(ON_A_READ_ONLY_DISK, tmp_path, prefix=OWN_MOUNTS) == "refused runs.db\nrefused new.db\n"


@on_linux
def test_on_a_full_disk_nothing_is_half_written_reading_works_and_space_mends_it(tmp_path: Path) -> None:
    words = f"{tmp_path}/runs.db: the disk is full; nothing of this call was kept: free space and try again\n"
    assert (
        run(ON_A_FULL_DISK, tmp_path, prefix=OWN_MOUNTS)
        == words * 2 + "full runs.db\nfull new.db\nseqs True\n"
    )
