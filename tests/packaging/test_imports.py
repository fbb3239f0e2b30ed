"""What an import loads, and what it says when an extra is missing; each in an interpreter of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""


def python(program: str, *, hidden: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter where the hidden packages are as good as not installed."""
    source = (HIDE.format(hidden=set(hidden)) if hidden else "") + program
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)


OF_THE_EXTRAS = ("langgraph", "rich", "starlette", "uvicorn", "uvloop", "httptools")


@pytest.mark.parametrize(
    "module", ["httpx", "sqlite3", "asyncio", "starlette", "uvicorn", "rich", "langgraph", "langchain_core"]
)
def test_importing_the_core_does_not_load(module: str) -> None:
    done = python(
        f"import sys, runmemory_core; assert runmemory_core.__all__; sys.exit({module!r} in sys.modules)"
    )
    assert done.returncode == 0, done.stderr or f"importing runmemory_core loads {module}"


def test_every_public_name_of_the_core_is_there_without_any_extra() -> None:
    done = python(
        "import runmemory_core as r; assert list(r.__all__) == sorted(r.__all__);"
        "print([n for n in r.__all__ if not hasattr(r, n)], len(r.__all__))",
        hidden=OF_THE_EXTRAS,
    )
    assert done.returncode == 0, done.stderr
    missing, count = done.stdout.rsplit(maxsplit=1)
    assert missing == "[]"
    assert int(count) >= 10


def test_every_error_is_public_and_every_public_name_is_listed() -> None:
    done = python(
        "import sys, runmemory_core as r; from runmemory_core.errors import BY_CODE\n"
        "print({e.__name__ for e in BY_CODE.values()} - set(r.__all__), set(r.__all__) - set(dir(r)))\n"
        "sys.exit('runmemory_core.client' in sys.modules)"
    )
    assert (done.returncode, done.stdout.strip()) == (0, "set() set()"), done.stderr


def test_the_embedded_store_works_without_any_extra() -> None:
    done = python(
        "from runmemory_core import Client\n"
        "with Client() as client:\n"
        "    client.save_checkpoint('r', step='one', state={'cursor': 1})\n"
        "    print(client.resume('r').checkpoint.state['cursor'])\n",
        hidden=OF_THE_EXTRAS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize(
    ("adapter", "framework", "module", "extra"),
    [("runmemory_langgraph", "LangGraph", "langgraph", "langgraph")],
)
def test_a_missing_extra_says_what_to_install(adapter: str, framework: str, module: str, extra: str) -> None:
    done = python(f"import {adapter}", hidden=(module,))
    assert done.returncode == 1
    last_line = done.stderr.strip().splitlines()[-1]
    assert last_line.endswith(f'{adapter} needs {framework}: pip install "runmemory[{extra}]"')
    assert last_line.startswith("ImportError: ")


OLD_LANGGRAPH = """
import sys
sys.path.insert(0, {folder!r})
import langgraph.checkpoint.base as base
del base.DeltaChannelHistory
"""


def test_an_old_langgraph_says_what_to_upgrade(tmp_path: Path) -> None:
    told = tmp_path / "langgraph_checkpoint-3.0.1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: langgraph-checkpoint\nVersion: 3.0.1\n")
    old = OLD_LANGGRAPH.format(folder=str(tmp_path))
    done = python(f"{old}import runmemory_langgraph")
    assert done.stderr.strip().splitlines()[-1] == (
        "ImportError: runmemory_langgraph needs langgraph-checkpoint 4.3 or newer, here is 3.0.1: "
        'pip install -U "runmemory[langgraph]"'
    )
    done = python(f"{old}from runmemory_core.cli import main; sys.exit(main(['doctor', '--json']))")
    assert done.returncode == 0, done.stderr
    (extra,) = (f for f in json.loads(done.stdout)["findings"] if f["what"] == "extra langgraph")
    assert "langgraph-checkpoint 3.0.1 is too old, 4.3 is needed: pip install -U" in extra["detail"]


def test_the_control_sees_a_hidden_module_as_missing() -> None:
    assert "ModuleNotFoundError" in python("import rich", hidden=("rich",)).stderr
