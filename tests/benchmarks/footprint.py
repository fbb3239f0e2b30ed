"""What importing costs over pydantic, and what an idle service holds in memory."""

import re
import subprocess
import sys
from pathlib import Path
from statistics import median

from tests.benchmarks.measuring import scratch, show
from tests.service.serving import running_service

ROUNDS = 9


def import_milliseconds(module: str) -> float:
    code = f"import time; begun = time.perf_counter(); import {module}; print(time.perf_counter() - begun)"
    return (
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        * 1e3
    )


def main() -> None:
    taken: dict[str, list[float]] = {
        "pydantic": [],
        "runmemory_core": [],
        "pydantic, runmemory_core.client": [],
    }
    for _ in range(ROUNDS):
        for module, found in taken.items():
            found.append(import_milliseconds(module))
    base = median(taken["pydantic"])
    with scratch() as folder, running_service(f"sqlite:///{folder}/idle.db") as service:
        service.ask("GET", "/healthz")
        status = Path(f"/proc/{service.process.pid}/status").read_text()
        resident = int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024
    show(
        "footprint",
        ["", "measured", "aim"],
        [
            ["import pydantic", f"{base:.0f} ms", ""],
            ["import runmemory_core", f"{median(taken['runmemory_core']):.0f} ms", f"≤ {base + 60:.0f} ms"],
            ["… and its client", f"{median(taken['pydantic, runmemory_core.client']):.0f} ms", ""],
            ["idle runmemory serve", f"{resident:.0f} MiB", "≤ 90 MiB"],
        ],
    )


if __name__ == "__main__":
    main()
