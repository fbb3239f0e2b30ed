"""A service for the examples that need one: started as the demonstration starts its own."""

from __future__ import annotations

import importlib
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, project: Path, tmp_path: Path) -> Generator[dict[str, str]]:
    """What a program has to have in its environment to save to it."""
    monkeypatch.syspath_prepend(str(project / "examples"))
    with importlib.import_module("langgraph_resume").served(tmp_path) as settings:
        yield settings
