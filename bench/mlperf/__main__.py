"""`python bench/mlperf ..`: see command.py."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "src")]

from mlperf.command import main  # noqa: E402

if __name__ == "__main__":
    main()
