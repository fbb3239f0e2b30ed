"""Each contract of import-linter is broken on purpose, in a copy, and has to notice."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = [
    contract["name"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
]

# Contract -> the module that breaks it, and the line that does.
VIOLATIONS = {
    "each floor imports only what is below it": ("runmemory_core/errors.py", "import runmemory_core.client"),
    "the pure floors know no clock, file, network or thread": ("runmemory_core/model.py", "import time"),
    "the engine is handed its clock and its transaction": (
        "runmemory_core/engine/__init__.py",
        "import threading",
    ),
    "the HTTP transport reaches no engine and no store": (
        "runmemory_core/transports/http.py",
        "import runmemory_core.store",
    ),
    "httpx stays inside one module": ("runmemory_core/service/__init__.py", "import httpx"),
    "the core knows no adapter, and adapters not each other": (
        "runmemory_core/client/__init__.py",
        "import runmemory_langgraph",
    ),
    "adapters use public names only": (
        "runmemory_langgraph/__init__.py",
        "from runmemory_core import engine",
    ),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The sources and the contracts in a folder where they may be broken."""
    without_caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "runmemory_core", tmp_path / "runmemory_core", ignore=without_caches)
    shutil.copytree(ROOT / "integrations", tmp_path, ignore=without_caches, dirs_exist_ok=True)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on a copy; the folder it starts in comes before the installed project."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def broken_contracts(output: str) -> set[str]:
    return {name for name in CONTRACTS if f"{name} BROKEN" in " ".join(output.split())}


def test_every_contract_has_a_violation_here() -> None:
    assert set(VIOLATIONS) == set(CONTRACTS)


def test_an_untouched_copy_keeps_every_contract(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("contract", CONTRACTS)
def test_a_violation_breaks_its_contract(copy: Path, contract: str) -> None:
    module, line = VIOLATIONS[contract]
    with (copy / module).open("a") as source:
        source.write(f"\n{line}\n")
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert contract in broken_contracts(done.stdout)


def test_a_new_module_needs_a_floor(copy: Path) -> None:
    (copy / "runmemory_core" / "attic.py").touch()
    done = lint(copy)
    assert done.returncode != 0
    assert "attic" in done.stdout + done.stderr
