"""The clients: `Client` for plain Python, `AsyncClient` for event loops, and `Run`, the helper in a ``with``."""

from __future__ import annotations

from runmemory_core.client._run import AsyncRun, Run
from runmemory_core.client.asynchronous import AsyncClient, AsyncStoreClient
from runmemory_core.client.blocking import Client, StoreClient
from runmemory_core.store._forks import around_forks

__all__ = ["AsyncClient", "AsyncRun", "AsyncStoreClient", "Client", "Run", "StoreClient", "around_forks"]
