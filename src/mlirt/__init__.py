"""mlirt: an open inference compiler and runtime.

`compile` turns a trained network into an engine, `load` opens a saved plan file; both give an object with `run` and
`save`. Names are resolved on first use, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlirt.version import __version__

if TYPE_CHECKING:
    from mlirt.builder.compile import compile
    from mlirt.builder.tactics.timing_cache import TimingCache
    from mlirt.errors import CompileError, InvalidInputError, InvalidModelError, MlirtError, PlanError, UnsupportedError
    from mlirt.runtime.engine import Engine, load

_HOMES = {
    "compile": "mlirt.builder.compile",
    "TimingCache": "mlirt.builder.tactics.timing_cache",
    "Engine": "mlirt.runtime.engine",
    "load": "mlirt.runtime.engine",
    "MlirtError": "mlirt.errors",
    "UnsupportedError": "mlirt.errors",
    "InvalidModelError": "mlirt.errors",
    "InvalidInputError": "mlirt.errors",
    "PlanError": "mlirt.errors",
    "CompileError": "mlirt.errors",
}

__all__ = [
    "CompileError",
    "Engine",
    "InvalidInputError",
    "InvalidModelError",
    "MlirtError",
    "PlanError",
    "TimingCache",
    "UnsupportedError",
    "__version__",
    "compile",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mlirt' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
