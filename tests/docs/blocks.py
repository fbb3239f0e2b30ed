"""What the documentation shows of the code: blocks copied from `examples/`, and tables made by `tables.py`.

No block is written by hand: it follows a comment that names its source, whole or one region of it.

    <!-- include: examples/quickstart.py -->
    <!-- include: examples/quickstart.py:saving -->

A region lies between the lines `# [start:saving]` and `# [end:saving]`; such lines are never shown.
Run as a program, this file fills the blocks and tables in. Running the sources is `test_examples.py`.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs import tables

ROOT = Path(__file__).resolve().parents[2]

# Blocks nothing can run: what a program printed, and diagrams.
NOT_RUN = {"text", "mermaid"}

_BLOCK = re.compile(
    r"^(?:<!-- include: (?P<source>[^\s:]+)(?::(?P<region>[\w-]+))? -->\n+)?"
    r"(?P<indent>[ ]*)(?P<fence>`{3,}|~{3,})[ ]*(?P<language>[\w+-]*)[^\n]*\n"
    r"(?P<body>.*?)^(?P=indent)(?P=fence)[ ]*$",
    flags=re.MULTILINE | re.DOTALL,
)
_TABLE = re.compile(
    r"(?<=^<!-- table: )(?P<name>[\w ]+) -->\n.*?(?=^<!-- end of table -->$)", flags=re.MULTILINE | re.DOTALL
)
_MARKER = re.compile(r"^[ ]*# \[(?:start|end):[\w-]+\]\n", flags=re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block: where it stands, what it shows, and the file it claims to show."""

    line: int
    language: str
    source: str | None
    region: str | None
    body: str
    body_span: tuple[int, int]


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(page):
        yield Block(
            line=page.count("\n", 0, found.start("fence")) + 1,
            language=found["language"],
            source=found["source"],
            region=found["region"],
            body=found["body"],
            body_span=found.span("body"),
        )


def text_of(source: str, region: str | None) -> str:
    """What a block that includes this source has to show."""
    text = (ROOT / source).read_text()
    if region is not None:
        start, end = f"# [start:{region}]\n", f"# [end:{region}]\n"
        if text.count(start) != 1 or text.count(end) != 1:
            message = f"{source} must have the lines {start.strip()} and {end.strip()} once each"
            raise LookupError(message)
        text = text[text.index(start) + len(start) : text.index(end)]
        text = text[: text.rfind("\n") + 1]
    return textwrap.dedent(_MARKER.sub("", text)).strip("\n") + "\n"


def refreshed(page: str) -> str:
    """The page with every including block made equal to its source, and every table to what the code says."""
    for block in reversed(list(blocks_of(page))):
        if block.source is not None:
            start, end = block.body_span
            page = page[:start] + text_of(block.source, block.region) + page[end:]
    return _TABLE.sub(lambda found: f"{found['name']} -->\n\n{tables.table(found['name'])}\n", page)


def main() -> int:
    for path in pages():
        page = path.read_text()
        if (new := refreshed(page)) != page:
            path.write_text(new)
            print(f"refreshed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
