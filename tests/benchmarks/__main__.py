"""Run every benchmark in this folder, or those named on the command line."""

import importlib
import sys

ALL = ("embedded", "served", "mcp_calls", "saver", "footprint")

for name in sys.argv[1:] or ALL:
    importlib.import_module(f"tests.benchmarks.{name}").main()
