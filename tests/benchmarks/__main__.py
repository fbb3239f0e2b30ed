"""Run every benchmark in this folder, or those named on the command line."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
ALL = ("embedded", "served", "saver", "footprint")

for name in sys.argv[1:] or ALL:
    importlib.import_module(name).main()
