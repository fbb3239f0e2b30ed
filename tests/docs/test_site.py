"""The documentation builds as a site, with every link and page in its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_site_builds_without_a_warning(project: Path, tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", "-", "--site-dir", tmp_path],
        cwd=project,
        input=(project / "docs" / "mkdocs.yml").read_text(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "policy" / "dependencies" / "index.html").is_file()
    assert not (tmp_path / "mkdocs.yml").exists()
