"""Tables of the documentation that are made from the code, so that neither can change alone.

A page names one between `<!-- table: NAME -->` and `<!-- end of table -->`; `blocks.py` fills it in.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from runmemory_core.errors import BY_CODE, RunMemoryError
from runmemory_core.operations import OPERATIONS, TOOLS


def table(name: str) -> str:
    """The Markdown of a table: `tools`, `errors`, or `arguments of` a tool."""
    match name.split():
        case ["tools"]:
            return _rows(("tool", "what it is for"), ((f"`{tool.name}`", tool.description) for tool in TOOLS))
        case ["errors"]:
            return _rows(("code", "class", "HTTP", "what it means"), _errors())
        case ["arguments", "of", tool] if tool in OPERATIONS:
            return _rows(("argument", "type", "what it is"), _arguments(tool))
        case _:
            message = f"there is no table {name!r}"
            raise LookupError(message)


def _rows(heading: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [" | ".join(cells) for cells in (heading, *rows)]
    lines.insert(1, " | ".join("---" for _ in heading))
    return "".join(f"| {line} |\n" for line in lines)


def _errors() -> Iterator[tuple[str, ...]]:
    for code, error in BY_CODE.items():
        if error is not RunMemoryError:
            meaning = " ".join((inspect.getdoc(error) or "").split()).replace("``", "`")
            yield f"`{code}`", f"`{error.__name__}`", str(error.http_status), meaning


def _arguments(tool: str) -> Iterator[tuple[str, ...]]:
    schema = OPERATIONS[tool].request.model_json_schema()
    for name, argument in schema["properties"].items():
        needed = ", required" if name in schema.get("required", ()) else ""
        yield f"`{name}`", _type(argument) + needed, argument.get("description", "")


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    items = f" of {schema['items']['type']}s" if "items" in schema else ""
    return f"{schema['type']}{items}"
