"""Associative combines of numbers, each defined once: its identity, its meaning in NumPy, its ops, its text for CPUs.

From a row of `COMBINES` follow what `fused.reduction` and `kernel.reduce` mean and start with, what threads of a GPU
make of two numbers (`passes/lowering/threads`), and what vectors and their lanes are combined with on a CPU
(`codegen/numba_cpu/lane_reductions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import auto
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.tensor_types import is_bool, is_float, is_unsigned
from mlirt.errors import CompileError

if TYPE_CHECKING:
    import numpy as np


class ReduceKind(StrEnum):
    """A combine by its name in the IR."""

    ADD = auto()
    MUL = auto()
    MAX = auto()
    MIN = auto()
    AND = auto()
    OR = auto()


Op = Callable[[SSAValue, SSAValue], Operation]


@dataclass(frozen=True)
class Combine:
    """How two numbers become one, in no order that anyone may rely on.

    `identity` has the number that changes none of a NumPy type, `function` is NumPy's of two arrays, `ops` are for
    floating, signed and unsigned numbers (None: there are none). In source for CPUs `text` combines two expressions,
    `across` is the word for all lanes of a vector, and `fold` that for a wide vector and so many lanes.
    """

    identity: Callable[[str], float | int]
    function: str
    ops: tuple[Op | None, Op, Op]
    text: str
    across: str
    fold: str

    @property
    def is_infix(self) -> bool:
        """Whether the text is that of an operator of Python."""
        return not self.text[0].isalpha()

    def ufunc(self) -> np.ufunc:
        """The function of NumPy."""
        import numpy as np

        found: Any = getattr(np, self.function)
        return found

    def op(self, type_: Attribute) -> Op:
        """The op for numbers of a type; raises `CompileError` where they cannot be combined so."""
        floating, signed, unsigned = self.ops
        if is_float(type_):
            if floating is None:
                raise CompileError(f"{self.function} of {type_} has no meaning")
            return floating
        # Booleans are unsigned: as signed numbers true would be less than false.
        is_plain = isinstance(type_, IndexType) or not (is_bool(type_) or is_unsigned(type_))
        return signed if is_plain else unsigned


def _zero(dtype: str) -> int:
    return 0


def _one(dtype: str) -> int:
    return 1


def _lowest(dtype: str) -> float | int:
    if "float" in dtype:
        return float("-inf")
    return 0 if dtype == "bool" or dtype.startswith("u") else -(2 ** (_bits(dtype) - 1))


def _highest(dtype: str) -> float | int:
    if "float" in dtype:
        return float("inf")
    return 1 if dtype == "bool" else 2 ** (_bits(dtype) - (0 if dtype.startswith("u") else 1)) - 1


def _ones(dtype: str) -> int:
    return 1 if dtype == "bool" else 2 ** _bits(dtype) - 1 if dtype.startswith("u") else -1


def _bits(dtype: str) -> int:
    return int(dtype.removeprefix("u").removeprefix("int"))


_SUM = (arith.AddfOp, arith.AddiOp, arith.AddiOp)
_PRODUCT = (arith.MulfOp, arith.MuliOp, arith.MuliOp)
_MAX = (arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp)
_MIN = (arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp)
_AND, _OR = (None, arith.AndIOp, arith.AndIOp), (None, arith.OrIOp, arith.OrIOp)

COMBINES: Mapping[ReduceKind, Combine] = {
    ReduceKind.ADD: Combine(_zero, "add", _SUM, "{0} + {1}", "sum_of_lanes", "fold_sum"),
    ReduceKind.MUL: Combine(_one, "multiply", _PRODUCT, "{0} * {1}", "product_of_lanes", "fold_product"),
    ReduceKind.MAX: Combine(_lowest, "maximum", _MAX, "maximum({0}, {1})", "maximum_of_lanes", "fold_maximum"),
    ReduceKind.MIN: Combine(_highest, "minimum", _MIN, "minimum({0}, {1})", "minimum_of_lanes", "fold_minimum"),
    ReduceKind.AND: Combine(_ones, "bitwise_and", _AND, "{0} & {1}", "all_lanes", "fold_all"),
    ReduceKind.OR: Combine(_zero, "bitwise_or", _OR, "{0} | {1}", "any_lane", "fold_any"),
}


def identity(kind: ReduceKind, dtype: str) -> float | int:
    """What combining with leaves a value as it is, for the NumPy type of a name."""
    return COMBINES[kind].identity(dtype)


__all__ = ["COMBINES", "Combine", "ReduceKind", "identity"]
