"""The documentation shows only what runs, exactly as it ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import blocks
from tests.docs.test_examples import EXAMPLES

PAGES = {str(path.relative_to(blocks.ROOT)): path for path in blocks.pages()}

FENCE = "`" * 3


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_included_from_an_example_that_a_test_runs(page: str) -> None:
    wrong = [
        f"{page}:{block.line} ({block.language or 'no language'}) includes {block.source}"
        for block in blocks.blocks_of(PAGES[page].read_text())
        if block.language not in blocks.NOT_RUN and block.source not in EXAMPLES
    ]
    assert not wrong


@pytest.mark.parametrize("page", PAGES)
def test_every_block_equals_its_source(page: str) -> None:
    text = PAGES[page].read_text()
    assert blocks.refreshed(text) == text, f"{page} differs from its examples: run `make format`"


def test_a_block_shows_the_file_without_its_region_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(blocks, "ROOT", tmp_path)
    (tmp_path / "a.py").write_text("one\nif one:\n    # [start:two]\n    two\n    # [end:two]\nthree\n")
    page = (
        f"<!-- include: a.py -->\n{FENCE}python\n{FENCE}\n"
        f"<!-- include: a.py:two -->\n{FENCE}python\nstale\n{FENCE}\n"
    )
    whole, region = blocks.blocks_of(blocks.refreshed(page))
    assert whole.body == "one\nif one:\n    two\nthree\n"
    assert region.body == "two\n"
    assert blocks.refreshed(page).count(FENCE) == page.count(FENCE)


def test_a_region_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(blocks, "ROOT", tmp_path)
    (tmp_path / "a.py").write_text("one\n")
    with pytest.raises(LookupError, match=r"a\.py must have the lines # \[start:two\]"):
        blocks.text_of("a.py", "two")


def test_a_block_without_a_source_is_seen() -> None:
    (block,) = blocks.blocks_of(f"text\n\n{FENCE}python\nprint()\n{FENCE}\n")
    assert (block.source, block.language, block.line) == (None, "python", 3)
