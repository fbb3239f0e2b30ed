"""The lock: complete, hashed, and silent about where packages come from."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# In pieces, so that this file passes its own test.
REGISTRY_HOSTS = [".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"))]


def pinned(project: Path) -> dict[str, set[str]]:
    """Name to locked versions; a package may have one per Python version."""
    versions: dict[str, set[str]] = {}
    for name, version in re.findall(
        r"^([\w.-]+)==(\S+)", (project / "requirements.lock").read_text(), flags=re.MULTILINE
    ):
        versions.setdefault(canonicalize_name(name), set()).add(version)
    return versions


def requirements(project: Path) -> list[Requirement]:
    """What pyproject.toml asks for, over all extras, the development group and the build."""
    pyproject = tomllib.loads((project / "pyproject.toml").read_text())
    asked = [
        *pyproject["build-system"]["requires"],
        *pyproject["project"]["dependencies"],
        *(line for extra in pyproject["project"]["optional-dependencies"].values() for line in extra),
        *(line for group in pyproject["dependency-groups"].values() for line in group),
    ]
    return [Requirement(line) for line in asked if not line.startswith("runmemory[")]


def test_every_requirement_is_locked_at_a_version_it_allows(project: Path) -> None:
    locked = pinned(project)
    for requirement in requirements(project):
        versions = locked.get(canonicalize_name(requirement.name), set())
        assert versions, f"{requirement.name} is not locked: run `make lock`"
        refused = {version for version in versions if version not in requirement.specifier}
        assert not refused, f"{requirement} does not allow the locked {refused}: run `make lock`"


def test_every_locked_package_has_its_hashes(project: Path) -> None:
    entries = re.split(r"^(?=[\w.-]+==)", (project / "requirements.lock").read_text(), flags=re.MULTILINE)[1:]
    assert len(entries) == sum(map(len, pinned(project).values()))
    assert not [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry]


def test_the_lock_names_no_index_and_no_folder(project: Path) -> None:
    lock = (project / "requirements.lock").read_text()
    assert "://" not in lock
    assert not re.findall(r"^\s*--(?:index|extra-index|find-links)\S*", lock, flags=re.MULTILINE)
    assert not re.findall(r"(?:^|\s)/\S+", lock)


def test_no_file_of_the_project_names_a_package_registry(project: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=project,
        capture_output=True,
        check=True,
    )
    files = [project / name for name in listed.stdout.decode().split("\0") if name]
    assert project / "pyproject.toml" in files
    naming = [
        str(file.relative_to(project))
        for file in files
        if file.is_file() and any(host.encode() in file.read_bytes() for host in REGISTRY_HOSTS)
    ]
    assert not naming


def test_uvs_own_lock_which_records_addresses_stays_out_of_git(project: Path) -> None:
    ignored = subprocess.run(["git", "check-ignore", "--quiet", "uv.lock"], cwd=project, check=False)
    assert ignored.returncode == 0
