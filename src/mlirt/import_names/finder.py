"""Finds `tensorrt` and its other names in mlirt, and CUDA's runtime in host memory where there is no device.

TensorRT's names are always bound. `cuda.cudart`, `cuda.bindings.runtime`, `pycuda` and `cupy` are bound only where no
CUDA device is there: an engine on a GPU needs the real ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_TENSORRT = frozenset({"tensorrt", "tensorrt_bindings", "tensorrt_libs", "tensorrt_lean", "tensorrt_dispatch"})
# What stands for a module on the host's memory.
_ON_THE_HOST = {
    "cuda.cudart": "mlirt.host_cudart",
    "cuda.bindings.runtime": "mlirt.host_cudart",
    "pycuda.driver": "mlirt.import_names.host_pycuda",
    "pycuda.autoinit": "mlirt.import_names.host_pycuda_context",
    "pycuda.autoprimaryctx": "mlirt.import_names.host_pycuda_context",
    "cupy": "mlirt.import_names.host_cupy",
}
# Packages that are only made where the real ones are not installed.
_PARENTS = frozenset({"cuda", "cuda.bindings", "pycuda"})


class NamesFinder(MetaPathFinder):
    """Stands before all other finders for the modules that it binds."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _TENSORRT:
            return ModuleSpec(fullname, NamesLoader(fill_tensorrt), is_package=True)
        if fullname == "tensorrt.plugin":
            return ModuleSpec(fullname, NamesLoader(_forward_to("mlirt.plugin")))
        if fullname in _ON_THE_HOST and not _device_is_here():
            return ModuleSpec(fullname, NamesLoader(_forward_to(_ON_THE_HOST[fullname])))
        return None


class ParentsFinder(MetaPathFinder):
    """Stands behind all other finders: the packages of what is bound, where nobody else has them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _PARENTS and not _device_is_here():
            return ModuleSpec(fullname, NamesLoader(_leave_empty), is_package=True)
        return None


class NamesLoader(Loader):
    """Fills a module by a function."""

    def __init__(self, fill: Callable[[ModuleType], None]) -> None:
        self._fill = fill

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        self._fill(module)


def install() -> None:
    """Bind the names in this process; a second call changes nothing."""
    if any(isinstance(one, NamesFinder) for one in sys.meta_path):
        return
    sys.meta_path.insert(0, NamesFinder())
    sys.meta_path.append(ParentsFinder())
    from mlirt.import_names.host_libcudart import offer_libcudart

    offer_libcudart(_device_is_here)


def fill_tensorrt(module: ModuleType) -> None:
    """The names of mlirt.tensorrt, each resolved when it is first asked for."""
    own = import_module("mlirt.tensorrt")
    module.__doc__ = own.__doc__
    module.__version__ = own.__version__  # pyright: ignore[reportAttributeAccessIssue]
    module.__all__ = own.__all__  # pyright: ignore[reportAttributeAccessIssue]

    def resolve(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        found = getattr(own, name)
        setattr(module, name, found)
        return found

    module.__getattr__ = resolve  # pyright: ignore[reportAttributeAccessIssue]


def _forward_to(home: str) -> Callable[[ModuleType], None]:
    def fill(module: ModuleType) -> None:
        own = import_module(home)
        module.__doc__ = own.__doc__
        vars(module).update({name: value for name, value in vars(own).items() if not name.startswith("_")})

    return fill


def _leave_empty(module: ModuleType) -> None:
    """A package whose modules are bound one by one."""


def _device_is_here() -> bool:
    """Whether CUDA's driver sees a device; asked when a module of CUDA is first imported."""
    from mlirt.import_names.device_presence import device_is_here

    return device_is_here()


def is_bound(name: str) -> bool:
    """Whether an import of a name leads to mlirt."""
    spec = find_spec(name)
    return spec is not None and isinstance(spec.loader, NamesLoader)
