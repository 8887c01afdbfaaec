"""How lit finds and runs the `.mlir` tests: `lit test/` from the root of the repository, with the tools on the path."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lit.formats  # pyright: ignore[reportMissingTypeStubs]

if TYPE_CHECKING:
    config: Any = None  # lit puts its configuration object here

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE / "support"))

from cuda_presence import has_cuda  # noqa: E402  (found only by the path above)

config.name = "mlirt"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.test_source_root = str(_HERE)
config.test_exec_root = str(_HERE.parent / ".cache" / "lit")
# The tools beside the Python that runs lit, so that a virtual environment need not be active.
config.environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
config.environment["MLIRT_PLAN_CACHE_MB"] = "0"  # tests see what the compiler does, not what it did
if "PYTHONPATH" in os.environ:
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
if has_cuda():
    config.available_features.add("cuda")
