"""numba and llvmlite, which carry no type information, under names of type `Any`."""

from importlib import import_module
from typing import Any

operator: Any = import_module("operator")
ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.core.types")
cgutils: Any = import_module("numba.core.cgutils")
models: Any = import_module("numba.core.datamodel.models")
register_model: Any = import_module("numba.core.datamodel.registry").register_default
intrinsic: Any = import_module("numba.core.extending").intrinsic
lower_builtin: Any = import_module("numba.core.imputils").lower_builtin
templates: Any = import_module("numba.core.typing.templates")
njit: Any = import_module("numba").njit
signature: Any = templates.signature
