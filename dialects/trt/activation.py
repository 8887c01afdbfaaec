"""Pointwise activations: TensorRT's twelve kinds, and those that trained networks hold besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import auto
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import FloatAttr, TensorType, f64
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
from mlirt.dialects.tensor_types import Tensor, element_of, is_bool
from mlirt.dialects.trt.operand_checks import tensor_type
from mlirt.dialects.wide_arithmetic import truncated

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class ActivationKind(StrEnum):
    RELU = auto()
    SIGMOID = auto()
    TANH = auto()
    LEAKY_RELU = auto()
    ELU = auto()
    SELU = auto()
    SOFTSIGN = auto()
    SOFTPLUS = auto()
    CLIP = auto()
    HARD_SIGMOID = auto()
    SCALED_TANH = auto()
    THRESHOLDED_RELU = auto()
    GELU_ERF = auto()
    GELU_TANH = auto()
    HARD_SWISH = auto()
    MISH = auto()
    CELU = auto()
    RATIONAL_SIGMOID = auto()
    RATIONAL_TANH = auto()


@irdl_attr_definition
class ActivationKindAttr(EnumAttribute[ActivationKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.activation_kind"


def _clip(x: Array, low: float, high: float) -> Array:
    """A bound that is not a number bounds nothing; those of integers are truncated, to the range of their type."""
    import numpy as np

    if low > -np.inf:
        x = np.maximum(x, _bound(low, x))
    return np.minimum(x, _bound(high, x)) if high < np.inf else x


def _bound(value: float, x: Array) -> float | Array:
    import numpy as np

    if x.dtype.kind not in "iu":
        return value
    limits = np.iinfo(x.dtype)
    return np.asarray(int(min(max(value, limits.min), limits.max)), x.dtype)


def _formulas() -> dict[ActivationKind, Callable[[Array, float, float], Array]]:
    import numpy as np

    from mlirt.dialects.rational_functions import SIGMOID, TANH

    def erf(x: Array) -> Array:
        from mlirt.dialects.special_functions import erf as evaluate

        return evaluate(x)

    return {
        ActivationKind.RELU: lambda x, a, b: np.maximum(x, 0),
        ActivationKind.SIGMOID: lambda x, a, b: np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x))),
        ActivationKind.TANH: lambda x, a, b: np.tanh(x),
        ActivationKind.LEAKY_RELU: lambda x, a, b: np.where(x >= 0, x, a * x),
        ActivationKind.ELU: lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
        ActivationKind.SELU: lambda x, a, b: b * np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
        ActivationKind.SOFTSIGN: lambda x, a, b: x / (1 + np.abs(x)),
        ActivationKind.SOFTPLUS: lambda x, a, b: a * np.logaddexp(b * x, 0),
        ActivationKind.CLIP: _clip,
        ActivationKind.HARD_SIGMOID: lambda x, a, b: np.clip(a * x + b, 0, 1),
        ActivationKind.SCALED_TANH: lambda x, a, b: a * np.tanh(b * x),
        ActivationKind.THRESHOLDED_RELU: lambda x, a, b: np.where(x > a, x, 0),
        ActivationKind.GELU_ERF: lambda x, a, b: 0.5 * x * (1 + erf(x * np.sqrt(0.5))),
        ActivationKind.GELU_TANH: lambda x, a, b: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        ActivationKind.HARD_SWISH: lambda x, a, b: x * np.clip(a * x + b, 0, 1),
        ActivationKind.MISH: lambda x, a, b: x * np.tanh(np.logaddexp(x, 0)),
        ActivationKind.CELU: lambda x, a, b: np.maximum(x, 0) + np.minimum(0, a * np.expm1(np.minimum(x, 0) / a)),
        ActivationKind.RATIONAL_SIGMOID: lambda x, a, b: SIGMOID(x),
        ActivationKind.RATIONAL_TANH: lambda x, a, b: TANH(x),
    }


@irdl_op_definition
class ActivationOp(TensorOp):
    """Apply an activation to each element; the result has the operand's type (tensorrt-features.md#1.1a, 1.1b).

    | kind | y |
    |---|---|
    | relu, sigmoid, tanh | max(x, 0), 1 / (1 + exp(-x)), tanh(x) |
    | leaky_relu, elu | x where x >= 0, else alpha x, alpha (exp(x) - 1) |
    | selu | beta (x where x >= 0, else alpha (exp(x) - 1)) |
    | softsign, softplus | x / (1 + abs(x)), alpha log(exp(beta x) + 1) |
    | clip, hard_sigmoid | min(max(x, alpha), beta), clip(alpha x + beta, 0, 1); not-a-number is no bound |
    | scaled_tanh, thresholded_relu | alpha tanh(beta x), x where x > alpha else 0 |
    | gelu_erf, gelu_tanh, mish, celu | as in ONNX; celu uses alpha |
    | hard_swish | x clip(alpha x + beta, 0, 1) |
    | rational_sigmoid, rational_tanh | sigmoid and tanh as quotients of polynomials, with the same bits everywhere |

    C1: the element type is not boolean.

    Example: `%y = trt.activation leaky_relu %x {alpha = 0.1 : f64} : (tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "trt.activation"

    kind = prop_def(ActivationKindAttr)
    input = operand_def(TensorType)
    alpha = prop_def(FloatAttr, default_value=FloatAttr(0.0, f64))
    beta = prop_def(FloatAttr, default_value=FloatAttr(0.0, f64))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        require(not is_bool(element_of(self.input.type)), f"C1: {self.name} needs numbers, but its input is boolean")

    def infer(self) -> Sequence[Tensor]:
        return [tensor_type(self.input.type)]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        (x,) = arrays
        is_exact = self.kind.data in (ActivationKind.RELU, ActivationKind.CLIP) and x.dtype.kind in "iu"
        wide = x if is_exact else x.astype(np.float64)
        with np.errstate(all="ignore"):
            y = np.asarray(apply_activation(self.kind.data, wide, self.alpha.value.data, self.beta.value.data))
            return [y.astype(x.dtype) if is_exact or x.dtype.kind in "fV" else truncated(y, x.dtype)]


def apply_activation(kind: ActivationKind, x: Array, alpha: float, beta: float) -> Array:
    """The activation of each element of an array, in the array's own precision."""
    return _formulas()[kind](x, alpha, beta)
