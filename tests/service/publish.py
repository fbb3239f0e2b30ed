"""Writes the catalogue files that the package carries; run by `make format`, and `test_catalogue` looks."""

from __future__ import annotations

from pathlib import Path

from runmemory_core.model import HOSTED_URL
from runmemory_core.service import catalogue

FOLDER = Path(catalogue.__file__).parent / "published"


def main() -> None:
    for published in catalogue.FILES:
        file, text = FOLDER / published.file, published.text(HOSTED_URL)
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            print(f"refreshed {published.file}")


if __name__ == "__main__":
    main()
