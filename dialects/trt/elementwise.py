"""Two operands, element by element, with broadcast of length-1 dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import auto
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType, i1
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.broadcasting import broadcast
from mlirt.dialects.length_requirements import LengthRequirement
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, is_bool, is_float, rank, tensor
from mlirt.dialects.wide_arithmetic import integer_power, is_float_array, power, truncated_quotient

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class ElementwiseKind(StrEnum):
    SUM = auto()
    PROD = auto()
    MAX = auto()
    MIN = auto()
    SUB = auto()
    DIV = auto()
    POW = auto()
    FLOOR_DIV = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    EQUAL = auto()
    GREATER = auto()
    LESS = auto()
    GREATER_EQUAL = auto()
    LESS_EQUAL = auto()
    MOD = auto()
    FMOD = auto()
    BIT_AND = auto()
    BIT_OR = auto()
    BIT_XOR = auto()
    SHIFT_LEFT = auto()
    SHIFT_RIGHT = auto()


COMPARISONS = frozenset(
    {
        ElementwiseKind.EQUAL,
        ElementwiseKind.GREATER,
        ElementwiseKind.LESS,
        ElementwiseKind.GREATER_EQUAL,
        ElementwiseKind.LESS_EQUAL,
    }
)
LOGICAL = frozenset({ElementwiseKind.AND, ElementwiseKind.OR, ElementwiseKind.XOR})
INTEGER_ONLY = frozenset(
    {
        ElementwiseKind.BIT_AND,
        ElementwiseKind.BIT_OR,
        ElementwiseKind.BIT_XOR,
        ElementwiseKind.SHIFT_LEFT,
        ElementwiseKind.SHIFT_RIGHT,
    }
)


@irdl_attr_definition
class ElementwiseKindAttr(EnumAttribute[ElementwiseKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.elementwise_kind"


def _quotient(a: Array, b: Array) -> Array:
    return a / b if is_float_array(a) else truncated_quotient(a, b)


def _floored_quotient(a: Array, b: Array) -> Array:
    """Rounded down; that of floats is rounded to their precision first, half precision to that of float32."""
    import numpy as np

    if not is_float_array(a):
        return np.floor_divide(a, b)
    if a.itemsize < 4:
        a, b = a.astype(np.float32), b.astype(np.float32)
    return np.floor(a / b)


def _power(a: Array, b: Array) -> Array:
    return power(a, b) if is_float_array(a) else integer_power(a, b)


def _formulas() -> dict[ElementwiseKind, Callable[[Array, Array], Array]]:
    import numpy as np

    kind = ElementwiseKind
    return {
        kind.SUM: np.add,
        kind.PROD: np.multiply,
        kind.MAX: np.maximum,
        kind.MIN: np.minimum,
        kind.SUB: np.subtract,
        kind.DIV: _quotient,
        kind.POW: _power,
        kind.FLOOR_DIV: _floored_quotient,
        kind.AND: np.logical_and,
        kind.OR: np.logical_or,
        kind.XOR: np.logical_xor,
        kind.EQUAL: np.equal,
        kind.GREATER: np.greater,
        kind.LESS: np.less,
        kind.GREATER_EQUAL: np.greater_equal,
        kind.LESS_EQUAL: np.less_equal,
        kind.MOD: np.mod,
        kind.FMOD: np.fmod,
        kind.BIT_AND: np.bitwise_and,
        kind.BIT_OR: np.bitwise_or,
        kind.BIT_XOR: np.bitwise_xor,
        kind.SHIFT_LEFT: np.left_shift,
        kind.SHIFT_RIGHT: np.right_shift,
    }


@irdl_op_definition
class ElementwiseOp(TensorOp):
    """Combine two tensors of equal rank; a dimension of length 1 is repeated (tensorrt-features.md#1.10a, 1.10b).

    Comparisons and logic give booleans. `div` of integers truncates toward zero, `floor_div` rounds the quotient down,
    `mod` takes the divisor's sign and `fmod` the dividend's; both are exact. Integers wrap around, also where the least
    one is divided by -1; divided by zero they give 0. A negative power of an integer is 0, unless that is 1 or -1.

    C1: both operands have the same element type. C2: both have the same rank.
    C3: `and`, `or`, `xor` need booleans. C4: bit operations and shifts need integers.
    C5: dimensions are equal, or one of them is 1. C6: arithmetic and ordering need numbers.

    Example: `%y = trt.elementwise sum %a, %b : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>`
    """

    name = "trt.elementwise"

    kind = prop_def(ElementwiseKindAttr)
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        kind, left, right = self.kind.data, element_of(self.lhs.type), element_of(self.rhs.type)
        require(left == right, f"C1: operation {kind} has incompatible input types {left} and {right}")
        require(
            rank(self.lhs.type) == rank(self.rhs.type),
            f"C2: operation {kind} needs equal ranks, but they are {rank(self.lhs.type)} and {rank(self.rhs.type)}",
        )
        if kind in LOGICAL:
            require(is_bool(left), f"C3: operation {kind} requires boolean inputs, but they are {left}")
        elif kind in INTEGER_ONLY:
            require(not is_float(left) and not is_bool(left), f"C4: operation {kind} requires integers, not {left}")
        elif kind is not ElementwiseKind.EQUAL:
            require(not is_bool(left), f"C6: operation {kind} requires inputs with activation type, not booleans")
        broadcast([dims(self.lhs.type), dims(self.rhs.type)])

    def length_requirements(self) -> Iterator[LengthRequirement]:
        from mlirt.dialects.trt.broadcast_axes import broadcast_requirements

        yield from broadcast_requirements(self, "C5")

    def infer(self) -> Sequence[Tensor]:
        element = i1 if self.kind.data in COMPARISONS else element_of(self.lhs.type)
        return [tensor(element, broadcast([dims(self.lhs.type), dims(self.rhs.type)]))]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        with np.errstate(all="ignore"):
            result = np.asarray(_formulas()[self.kind.data](*arrays))
            return [result.astype(np.bool_ if self.kind.data in COMPARISONS else arrays[0].dtype)]
