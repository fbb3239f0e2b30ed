"""A run in an event loop: the same names as the blocking client, with await."""

# [start:all]
import asyncio

from runmemory_core import AsyncClient


async def main() -> None:
    async with AsyncClient() as client, client.run("page-import", again=True) as run:
        for page in run.remaining(range(1, 6)):
            await asyncio.sleep(0.1)  # your work
            await run.save(f"imported page {page}", state={"page": page}, done=[page])


asyncio.run(main())
# [end:all]
