"""The catalogue files before judges that others wrote: the registry's schema of servers, and skills-ref.

skillsaw carries the schema as the MCP registry published it, and checks what the registry asks beyond it;
skills-ref is the reference of agentskills.io. The quick tests use the schemas in tests/data, which are our own
reading; here it is seen that they let nothing pass that these refuse.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from runmemory_core.model import HOSTED_URL
from runmemory_core.service import catalogue
from tests.clients.conftest import ROOT, Clients
from tests.environments import interpreter_of

pytestmark = pytest.mark.long

PUBLISHED = Path(catalogue.__file__).parent / "published"
SERVER: dict[str, Any] = json.loads((PUBLISHED / "server.json").read_text())


def judge(clients: Clients, name: str) -> Path:
    return interpreter_of(clients.folder / "catalogue").with_name(name)


@pytest.fixture
def official(clients: Clients) -> jsonschema.Draft7Validator:
    """The schema that server.json names as its own."""
    (file,) = (clients.folder / "catalogue").glob(
        "lib/*/site-packages/skillsaw/**/v2025_12_11/server.schema.json"
    )
    schema = json.loads(file.read_text())
    assert schema["$id"] == SERVER["$schema"]
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


@pytest.fixture
def ours() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((ROOT / "tests/data/server.schema.json").read_text()))


def remote(**change: Any) -> dict[str, Any]:
    return SERVER | {"remotes": [SERVER["remotes"][0] | change]}


def header(**change: Any) -> dict[str, Any]:
    return remote(headers=[SERVER["remotes"][0]["headers"][0] | change])


FAULTY: dict[str, dict[str, Any]] = {
    **{f"no {name}": {k: v for k, v in SERVER.items() if k != name} for name in ("name", "description", "version")},
    "a name without a slash": SERVER | {"name": "run-memory"},
    "a name with two": SERVER | {"name": "com.cloudforbots/run/memory"},
    "a name too short": SERVER | {"name": "/"},
    "a name too long": SERVER | {"name": f"a/{'b' * 199}"},
    "an empty title": SERVER | {"title": ""},
    "a title too long": SERVER | {"title": "x" * 101},
    "an empty description": SERVER | {"description": ""},
    "a description too long": SERVER | {"description": "x" * 101},
    "a version too long": SERVER | {"version": f"1.0.0-{'x' * 250}"},
    "a version that is a number": SERVER | {"version": 1},
    "an address that is a number": SERVER | {"websiteUrl": 1},
    "remotes that are no list": SERVER | {"remotes": {}},
    "a remote of another type": remote(type="http"),
    "a remote over pipes": remote(type="stdio"),
    "a remote at no address": remote(url="memory.cloudforbots.com/mcp"),
    "headers that are no list": remote(headers={}),
    "a header without a name": remote(headers=[{"isSecret": True}]),
    "a header of another format": header(format="text"),
    "a header required by a word": header(isRequired="no"),
    "a header secret by a word": header(isSecret="yes"),
    "a header with a number for its value": header(value=1),
    "a header with a word for its choices": header(choices="a"),
}  # fmt: skip


def test_the_entry_of_the_registry_fits_the_published_schema(official: jsonschema.Draft7Validator) -> None:
    official.validate(SERVER)


@pytest.mark.parametrize("fault", FAULTY)
def test_what_the_published_schema_refuses_ours_refuses(
    official: jsonschema.Draft7Validator, ours: jsonschema.Draft202012Validator, fault: str
) -> None:
    assert not official.is_valid(FAULTY[fault])
    assert not ours.is_valid(FAULTY[fault])


def test_the_registry_would_take_the_entry(clients: Clients, tmp_path: Path) -> None:
    """Beyond the schema: the form of the namespace, one exact version, addresses of https."""
    shutil.copy(PUBLISHED / "server.json", tmp_path)
    assert "All checks passed" in clients.run([judge(clients, "skillsaw"), "lint", tmp_path])


def test_the_registry_would_refuse_a_range_of_versions(clients: Clients, tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(json.dumps(SERVER | {"version": "^1.0.0"}))
    with pytest.raises(AssertionError, match="version"):
        clients.run([judge(clients, "skillsaw"), "lint", tmp_path])


LONG = f"https://{'a' * 60}.{'b' * 60}.example"
SPOILT: dict[str, Callable[[str], str]] = {
    "another name": lambda skill: skill.replace("name: run-memory", "name: Run-Memory"),
    "a field of our own": lambda skill: skill.replace("license: MIT", "licence: MIT"),
    "no description": lambda skill: skill.replace("\ndescription:", "\ncompatible:"),
}


def skill_in(folder: Path, text: str) -> Path:
    (folder / "run-memory").mkdir()
    (folder / "run-memory" / "SKILL.md").write_text(text)
    return folder / "run-memory"


@pytest.mark.parametrize("address", [HOSTED_URL, LONG])
def test_the_reference_takes_the_skill(clients: Clients, tmp_path: Path, address: str) -> None:
    skill = skill_in(tmp_path, catalogue.skill(address))
    assert "Valid skill" in clients.run([judge(clients, "agentskills"), "validate", skill])


@pytest.mark.parametrize("fault", SPOILT)
def test_the_reference_refuses_a_spoilt_one(clients: Clients, tmp_path: Path, fault: str) -> None:
    skill = skill_in(tmp_path, SPOILT[fault](catalogue.skill(HOSTED_URL)))
    with pytest.raises(AssertionError, match="ended with 1"):
        clients.run([judge(clients, "agentskills"), "validate", skill])
