"""What is inside the wheel and the source archive."""

from __future__ import annotations

import email
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement


def packages_of(project: Path) -> list[str]:
    pyproject = tomllib.loads((project / "pyproject.toml").read_text())
    return pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def source_files_of(project: Path) -> list[str]:
    """Every file git holds or would hold."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.splitlines() if (project / name).is_file()]


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_holds_the_packages_and_nothing_else_at_its_top(project: Path, wheel: Path) -> None:
    top = {PurePosixPath(name).parts[0] for name in names_in(wheel)}
    packages = {PurePosixPath(package).name for package in packages_of(project)}
    assert {"runmemory_core", "runmemory_langgraph"} <= packages
    assert top == packages | {"runmemory-0.1.0.dist-info"}


def test_every_file_of_a_package_reaches_the_wheel(project: Path, wheel: Path) -> None:
    in_wheel = set(names_in(wheel))
    for package in packages_of(project):
        parent = PurePosixPath(package).parent
        expected = {
            str(PurePosixPath(name).relative_to(parent))
            for name in source_files_of(project)
            if PurePosixPath(name).is_relative_to(package)
        }
        assert f"{PurePosixPath(package).name}/py.typed" in expected
        assert expected <= in_wheel


def test_every_integration_is_packaged(project: Path) -> None:
    """A folder of `integrations` is an adapter, found under the name it is imported by."""
    folders = {
        PurePosixPath(name).parts[1]
        for name in source_files_of(project)
        if name.startswith("integrations/") and name.endswith(".py")
    }
    assert folders <= {PurePosixPath(package).name for package in packages_of(project)}
    assert not (project / "integrations" / "__init__.py").exists()


def test_the_source_archive_holds_what_a_build_needs_and_no_environment(distributions: Path) -> None:
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {PurePosixPath(*PurePosixPath(name).parts[1:]) for name in opened.getnames()}
    assert {PurePosixPath(name) for name in ("pyproject.toml", "README.md", "LICENSE")} <= names
    assert not [name for name in names if name.parts[0] in {".venv", ".git", "dist", "site"}]


def test_the_metadata_offers_each_extra_and_the_union_of_all(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read("runmemory-0.1.0.dist-info/METADATA"))
    needs = [Requirement(line) for line in metadata.get_all("Requires-Dist") or []]
    of_extra = {
        extra: {need.name for need in needs if f'extra == "{extra}"' in str(need.marker)}
        for extra in metadata.get_all("Provides-Extra") or []
    }
    assert {"langgraph", "cli", "server", "all"} <= set(of_extra)
    assert all(of_extra.values())
    assert of_extra["all"] == set().union(*of_extra.values())
