"""A power cut: only what has reached the disk is left, and it holds every acknowledged save.

The database lies on a disk in a file. While a process saves, everything is stopped and the file is copied:
the copy has what was flushed and nothing of what only memory had. It is mounted and read like a machine that
starts again. Killing processes cannot show this, because their writes outlive them in memory.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.processes import Process

OWN_MOUNTS = ("unshare", "--mount")
SAVES = 60

MACHINE = """
import os, signal, subprocess, sys
from runmemory_core import Client, NotFound

folder, durability, saves = sys.argv[1], sys.argv[2], int(sys.argv[3])
disk, copy, mounted = f"{folder}/disk", f"{folder}/copy", f"{folder}/mounted"

def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

def mount(image):
    os.makedirs(mounted, exist_ok=True)
    run("mount", "-o", "loop", image, mounted)

run("truncate", "--size", "16M", disk)
run("mkfs.ext4", "-q", disk)
mount(disk)
os.sync()
program = [sys.executable, "-c", sys.stdin.read(), f"{mounted}/runs.db", durability]
saver = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
acknowledged = 0
while acknowledged < saves:
    acknowledged = int(saver.stdout.readline())
saver.send_signal(signal.SIGSTOP)
run("cp", "--sparse=always", disk, copy)
saver.kill()
for line in saver.stdout:
    acknowledged = int(line)
saver.wait()
run("umount", mounted)
mount(copy)
with Client(f"sqlite:///{mounted}/runs.db") as client:
    try:
        seqs = [row.seq for row in reversed(client.list_checkpoints("import", limit=500).checkpoints)]
    except NotFound:  # not even the run was left
        seqs = []
assert seqs == list(range(1, len(seqs) + 1)), seqs
run("umount", mounted)
print(acknowledged, len(seqs))
"""

SAVER = """
import sys
from runmemory_core import Client

with Client(f"sqlite:///{sys.argv[1]}") as client:
    if sys.argv[2] != "FULL":  # that is for the product to set
        client._transport._store._writing().execute(f"PRAGMA synchronous = {sys.argv[2]}")
    for number in range(1, 400):
        print(client.save_checkpoint("import", f"step {number}", state={"n": number}).seq, flush=True)
"""


def cut(folder: Path, durability: str) -> tuple[int, int]:
    """How many saves were acknowledged, and how many are left after the cut."""
    with Process(MACHINE, folder, durability, SAVES, prefix=OWN_MOUNTS) as machine:
        acknowledged, left = map(int, machine.end(SAVER).split())
    return acknowledged, left


@pytest.mark.long
def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged, left = cut(tmp_path, "FULL")
    assert SAVES <= acknowledged <= left


@pytest.mark.long
def test_without_flushing_a_power_cut_would_lose_saves(tmp_path: Path) -> None:
    """The control: where nothing is lost, the test above proves nothing."""
    acknowledged, left = cut(tmp_path, "OFF")
    assert left < acknowledged
