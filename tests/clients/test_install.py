"""Which clients a run speaks for is written down, and an update of them leaves the old ones behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.clients import install


def test_every_client_has_one_version() -> None:
    python = [package for packages in (install.PYTHON | install.JUDGES).values() for package in packages]
    for package in (install.NODE, *install.NPM):
        assert re.fullmatch(r"@?[^@]+@\d+\.\d+\.\d+[-.a-z0-9]*", package)
    for package in python:
        assert re.fullmatch(r"[a-z0-9-]+==\d+\.\d+\.\d+", package)


def test_another_version_is_another_folder_wherever_clients_lie(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    in_cache = install.folder()
    monkeypatch.setenv("RUNMEMORY_CLIENTS", str(tmp_path))
    assert install.folder() == tmp_path / in_cache.name
    monkeypatch.setitem(install.PYTHON, "mcp1", ("mcp==1.0.0",))
    assert install.folder().parent == tmp_path
    assert install.folder().name != in_cache.name
