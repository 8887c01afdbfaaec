"""Processor features that kernels are made for, beyond those that all code of a target may use."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from mlirt.dialects.kernel.core import FuncOp

_FEATURES = "features"


def need_features(function: FuncOp, names: Iterable[str]) -> None:
    """Note that a kernel is made for processors with these features."""
    wanted = sorted({*features_of_kernel(function), *names})
    if wanted:
        function.attributes[_FEATURES] = ArrayAttr[Attribute](StringAttr(name) for name in wanted)


def features_of_kernel(function: FuncOp) -> frozenset[str]:
    """The features that one kernel is made for."""
    given = function.attributes.get(_FEATURES)
    return frozenset(name.data for name in given) if isa(given, ArrayAttr[StringAttr]) else frozenset()


def features_of(module: ModuleOp) -> frozenset[str]:
    """The features that any kernel of a module is made for."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    return frozenset(name for function in functions for name in features_of_kernel(function))
