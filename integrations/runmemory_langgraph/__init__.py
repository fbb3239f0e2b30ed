"""LangGraph on Run Memory: ``graph.compile(checkpointer=RunMemorySaver())`` and nothing else changes."""

from __future__ import annotations

try:
    import langgraph.checkpoint.base  # noqa: F401  # pyright: ignore[reportUnusedImport] - asks whether it is there
except ImportError as error:
    raise ImportError('runmemory_langgraph needs LangGraph: pip install "runmemory[langgraph]"') from error

from runmemory_langgraph._decoding import DecodingRefused
from runmemory_langgraph._saver import RunMemorySaver

__all__ = ["DecodingRefused", "RunMemorySaver"]
