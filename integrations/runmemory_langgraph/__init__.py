"""LangGraph on Run Memory: ``graph.compile(checkpointer=RunMemorySaver())`` and nothing else changes."""

from __future__ import annotations

from importlib.metadata import version as _version

try:
    import langgraph.checkpoint.base as _base
except ImportError as error:
    raise ImportError('runmemory_langgraph needs LangGraph: pip install "runmemory[langgraph]"') from error
if not hasattr(_base, "DeltaChannelHistory"):
    raise ImportError(
        f"runmemory_langgraph needs langgraph-checkpoint 4.3 or newer, here is {_version('langgraph-checkpoint')}: "
        'pip install -U "runmemory[langgraph]"'
    )

from runmemory_langgraph._decoding import DecodingRefused
from runmemory_langgraph._saver import RunMemorySaver

__all__ = ["DecodingRefused", "RunMemorySaver"]
