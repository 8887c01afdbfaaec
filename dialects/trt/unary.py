"""Pointwise functions of one operand that have no parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, element_of, is_bool, is_float, with_element

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class UnaryKind(StrEnum):
    EXP = auto()
    LOG = auto()
    SQRT = auto()
    RECIP = auto()
    ABS = auto()
    NEG = auto()
    SIN = auto()
    COS = auto()
    TAN = auto()
    SINH = auto()
    COSH = auto()
    ASIN = auto()
    ACOS = auto()
    ATAN = auto()
    ASINH = auto()
    ACOSH = auto()
    ATANH = auto()
    CEIL = auto()
    FLOOR = auto()
    ERF = auto()
    NOT = auto()
    SIGN = auto()
    ROUND = auto()
    ISNAN = auto()
    ISINF = auto()
    ISINF_POS = auto()
    ISINF_NEG = auto()
    BITWISE_NOT = auto()


TESTS = frozenset({UnaryKind.ISNAN, UnaryKind.ISINF, UnaryKind.ISINF_POS, UnaryKind.ISINF_NEG})
# These mean something for integers as well; all others need floating-point numbers.
_ANY_NUMBER = frozenset(
    {UnaryKind.ABS, UnaryKind.NEG, UnaryKind.SIGN, UnaryKind.CEIL, UnaryKind.FLOOR, UnaryKind.ROUND}
)

_WHOLE = frozenset({UnaryKind.CEIL, UnaryKind.FLOOR, UnaryKind.ROUND})  # integers are that already


@irdl_attr_definition
class UnaryKindAttr(EnumAttribute[UnaryKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.unary_kind"


def _formulas() -> dict[UnaryKind, Callable[[Array], Array]]:
    import numpy as np

    from mlirt.dialects.special_functions import erf

    kind = UnaryKind
    return {
        kind.EXP: np.exp,
        kind.LOG: np.log,
        kind.SQRT: np.sqrt,
        kind.RECIP: np.reciprocal,
        kind.ABS: np.abs,
        kind.NEG: np.negative,
        kind.SIN: np.sin,
        kind.COS: np.cos,
        kind.TAN: np.tan,
        kind.SINH: np.sinh,
        kind.COSH: np.cosh,
        kind.ASIN: np.arcsin,
        kind.ACOS: np.arccos,
        kind.ATAN: np.arctan,
        kind.ASINH: np.arcsinh,
        kind.ACOSH: np.arccosh,
        kind.ATANH: np.arctanh,
        kind.CEIL: np.ceil,
        kind.FLOOR: np.floor,
        kind.ERF: erf,
        kind.NOT: np.logical_not,
        kind.SIGN: np.sign,
        kind.ROUND: np.rint,
        kind.ISNAN: np.isnan,
        kind.ISINF: np.isinf,
        kind.ISINF_POS: np.isposinf,
        kind.ISINF_NEG: np.isneginf,
        kind.BITWISE_NOT: np.invert,
    }


@irdl_op_definition
class UnaryOp(TensorOp):
    """Apply a function to each element; the result has the operand's type, tests give booleans
    (tensorrt-features.md#1.42a, 1.42b).

    `round` rounds half to even; `sign` is -1, 0 or 1; `isinf_pos` and `isinf_neg` look for one infinity.

    C1: `not` needs booleans. C2: all other kinds need numbers. C3: bitwise_not needs integers. C4: kinds other than
    abs, neg, sign, ceil, floor, round and bitwise_not need floating-point numbers.

    Example: `%y = trt.unary exp %x : (tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "trt.unary"

    kind = prop_def(UnaryKindAttr)
    input = operand_def(TensorType)
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        kind, element = self.kind.data, element_of(self.input.type)
        if kind is UnaryKind.NOT:
            require(is_bool(element), f"C1: operation {kind} requires booleans, not {element}")
            return
        require(not is_bool(element), f"C2: operation {kind} requires numbers, not booleans")
        if kind is UnaryKind.BITWISE_NOT:
            require(not is_float(element), f"C3: operation {kind} requires integers, not {element}")
        elif kind not in _ANY_NUMBER:
            require(is_float(element), f"C4: operation {kind} requires floating-point numbers, not {element}")

    def infer(self) -> Sequence[Tensor]:
        own = self.input.type
        return [with_element(own, i1 if self.kind.data in TESTS else element_of(own))]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        from mlirt.dialects.wide_arithmetic import is_float_array

        (x,) = arrays
        if self.kind.data in _WHOLE and not is_float_array(x):
            return [x]
        formula = _formulas()[self.kind.data]
        with np.errstate(all="ignore"):
            result = np.asarray(formula(x.astype(np.float64) if is_float_array(x) else x))
            return [result.astype(np.bool_ if self.kind.data in TESTS else x.dtype)]
