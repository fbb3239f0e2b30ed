"""``python -m runmemory_core.cli``: the same as the command ``runmemory``."""

from __future__ import annotations

import sys

from runmemory_core.cli import main

sys.exit(main())
