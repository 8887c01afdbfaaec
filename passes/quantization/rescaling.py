"""From exact sums of int8 to what the network reads: float32 numbers, or the bytes of the quantisation behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, f32, f64
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.locations import fuse
from mlirt.dialects.tensor_types import numpy_dtype, rank
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.elementwise import ElementwiseKind
from mlirt.dialects.trt.quantize import QuantizeOp
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.quantization.activation_bounds import KINDS, bounds_of, is_implied
from mlirt.passes.quantization.scalings import Refusal, Scaling, scaling_of
from mlirt.passes.rules import Match

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True, eq=False)
class Ending:
    """The quantisation that alone reads a layer's result, and the activations in between that it does not imply."""

    quantize: QuantizeOp
    scaling: Scaling
    kept: tuple[ActivationOp, ...]
    between: tuple[ActivationOp, ...]


def ending_of(value: SSAValue, ctx: Context, channel_axis: int | None = None) -> Ending | None:
    """The quantisation that reads `value`, directly or through rectifiers and clips.

    It has one scale for all, or one for each index of `channel_axis`, and then one zero point and only rectifiers.
    """
    between: list[ActivationOp] = []
    while (use := value.get_user_of_unique_use()) is not None:
        if use.parent is not (value.owner.parent if isinstance(value.owner, Operation) else value.owner):
            return None
        if isinstance(use, QuantizeOp):
            scaling = scaling_of(use, ctx)
            if isinstance(scaling, Refusal) or scaling.axis not in (None, channel_axis) or use.input is not value:
                return None
            kept = tuple(one for one in between if not is_implied(one, scaling))
            if scaling.axis is not None and (
                (scaling.zero != scaling.zero[0]).any() or any(one.kind.data is not ActivationKind.RELU for one in kept)
            ):
                return None
            return Ending(use, scaling, kept, tuple(between))
        if not isinstance(use, ActivationOp) or use.kind.data not in KINDS:
            return None
        between.append(use)
        value = use.output
    return None


def rescale(m: Match, layer: Operation, total: SSAValue, factor: Array, channel_axis: int) -> SSAValue:
    """What takes the place of a layer: `total`, an exact sum in int32, times `factor`, which is 0-D or per channel.

    A quantisation that alone reads the layer takes its scale from the factor, in float32 as integer kernels do, so that
    there is one multiplication and one rounding: all that is replaced.
    """
    import numpy as np

    ending = ending_of(layer.results[0], m.ctx, channel_axis % rank(total.type))
    multiplier = factor.astype(np.float32)
    m.replaces(layer)
    if ending is not None:
        multiplier = np.asarray(multiplier / ending.scaling.scale)
        m.replaces(ending.quantize, *reversed(ending.between), layer)
    layers = LayerBuilder.in_front_of(m.replaced, m.ctx, layer)
    axes = rank(total.type)
    along = [-1 if axis == channel_axis % axes and multiplier.ndim else 1 for axis in range(axes)]
    real = layers.cast(total, f32)
    value = layers.binary(ElementwiseKind.PROD, real, layers.constant(multiplier.reshape(along), "multiplier"))
    return value if ending is None else _rounded(value, ending, layers)


def _rounded(value: SSAValue, ending: Ending, layers: LayerBuilder) -> SSAValue:
    """The bytes of an ending, of a sum that is divided by the scale."""
    import numpy as np

    def put(op: Operation, *sources: Operation) -> SSAValue:
        made = layers.value(op)
        op.location = fuse(layers.named, *sources)
        return made

    for op in ending.kept:
        value = put(_in_units(op, value, ending.scaling), op)
    one, zero = layers.constant(np.array(1, np.float32), "multiplier"), ending.quantize.zero_point
    if zero is not None and ending.scaling.axis is not None:
        number = ending.scaling.zero[0].astype(numpy_dtype(ending.scaling.element))
        zero = layers.constant(number, "multiplier")
    rounded = QuantizeOp.build(operands=[value, one, zero], result_types=[ending.quantize.output.type])
    return put(rounded, *ending.between, ending.quantize)


def _in_units(op: ActivationOp, value: SSAValue, scaling: Scaling) -> ActivationOp:
    """The activation of numbers that are divided by the scale."""
    import numpy as np

    if op.kind.data is ActivationKind.RELU:
        return ActivationOp.build_inferred([value], {"kind": op.kind})
    low, high = (FloatAttr(float(np.float32(bound) / scaling.scale), f64) for bound in bounds_of(op))
    return ActivationOp.build_inferred([value], {"kind": op.kind, "alpha": low, "beta": high})
