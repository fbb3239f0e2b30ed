"""The pages of reference leave out nothing that the code has, and invent nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runmemory_core.operations import TOOLS, Operation
from runmemory_core.operations.tools import Envelope


def sections_of(page: Path) -> dict[str, str]:
    """The text of a page by the headings of its second level."""
    _, *parts = re.split(r"^## (.+)\n", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def names_in(table: str) -> list[str]:
    """What the first cells of a table name, in order."""
    cells = re.findall(r"^\| ([^|]+) \|", table, flags=re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_reference_names_each_field_of_a_reply(project: Path, tool: Operation) -> None:
    section = sections_of(project / "docs" / "reference" / "tools.md")[tool.name]
    _, _, replies = section.partition("| reply |")
    assert sorted(names_in(replies)) == sorted(set(tool.reply.model_fields) - set(Envelope.model_fields))


def test_the_reference_names_each_field_that_all_replies_have(project: Path) -> None:
    section = sections_of(project / "docs" / "reference" / "tools.md")["What every reply carries"]
    assert names_in(section) == list(Envelope.model_fields)


def test_the_readme_names_the_five_tools(project: Path) -> None:
    assert names_in(sections_of(project / "README.md")["The five tools"]) == [tool.name for tool in TOOLS]
