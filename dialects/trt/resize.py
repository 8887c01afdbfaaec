"""Resampling of an image to other lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, FloatAttr, TensorType, f64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.interpolation import Coordinate, Resampling, ResizeKind, Rounding, Selector
from mlirt.dialects.length_requirements import LengthRequirement, at_least
from mlirt.dialects.symbolic import Dim, floor_div
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, rank, with_dims
from mlirt.dialects.trt.operand_checks import numbers
from mlirt.dialects.trt.shape_values import shape_operand

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

# A scale such as 0.1 is a rounded float32: its simplest fraction this close is what was meant.
_CLOSE = 2.0**-22


@irdl_attr_definition
class ResizeKindAttr(EnumAttribute[ResizeKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.resize_kind"


@irdl_attr_definition
class CoordinateAttr(EnumAttribute[Coordinate], SpacedOpaqueSyntaxAttribute):
    name = "trt.coordinate"


@irdl_attr_definition
class RoundingAttr(EnumAttribute[Rounding], SpacedOpaqueSyntaxAttribute):
    name = "trt.rounding"


@irdl_attr_definition
class SelectorAttr(EnumAttribute[Selector], SpacedOpaqueSyntaxAttribute):
    name = "trt.selector"


@irdl_op_definition
class ResizeOp(TensorOp):
    """Resample each axis to a new length (tensorrt-features.md#1.31a-1.31c).

    The new lengths are the operand `shape`, or `output_dims`, or floor(length * scale). With `scales` the position of
    a sample follows from the scale, without from new length / old length. Position x of output sample i, for n samples
    from m:

    | coordinate | x |
    |---|---|
    | asymmetric | i / scale |
    | half_pixel | (i + 0.5) / scale - 0.5 |
    | pytorch_half_pixel | as half_pixel, 0 if n = 1 |
    | half_pixel_symmetric | as half_pixel, moved so that the samples lie around the centre |
    | tf_half_pixel_for_nn | (i + 0.5) / scale |
    | align_corners | i (m - 1) / (m scale - 1), 0 if m scale = 1 |
    | tf_crop_and_resize | from roi start to roi end times m - 1; outside the input: extrapolation_value |

    `nearest` rounds x as `rounding` says, `linear` and `cubic` weigh 2 or 4 neighbours per axis; `antialias` widens
    their kernel where an axis shrinks; `exclude_outside` drops neighbours outside the input instead of repeating the
    edge. With selector `upper` a single output sample is the first input sample.

    C1: the element type is not boolean. C2: the new lengths are known from operand, output_dims or scales. C3: lists
    have one entry per axis (roi: two). C4: the shape operand is a 1-D integer tensor of constant length, and comes
    without output_dims. C5: scales are positive. C6: tf_crop_and_resize needs roi.

    Example: `%y = trt.resize linear %x {scales = array<f64: 1.0, 1.0, 2.0, 2.0>, coordinate = #trt<coordinate
    half_pixel>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x8x8xf32>`
    """

    name = "trt.resize"

    kind = prop_def(ResizeKindAttr)
    input = operand_def(TensorType)
    shape = opt_operand_def(TensorType)
    output_dims = opt_prop_def(DimsAttr)
    scales = opt_prop_def(DenseArrayBase.constr(f64))
    coordinate = prop_def(CoordinateAttr, default_value=CoordinateAttr(Coordinate.ASYMMETRIC))
    rounding = prop_def(RoundingAttr, default_value=RoundingAttr(Rounding.FLOOR))
    selector = prop_def(SelectorAttr, default_value=SelectorAttr(Selector.FORMULA))
    cubic_coeff = prop_def(FloatAttr, default_value=FloatAttr(-0.75, f64))
    exclude_outside = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    antialias = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    roi = opt_prop_def(DenseArrayBase.constr(f64))
    extrapolation_value = prop_def(FloatAttr, default_value=FloatAttr(0.0, f64))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input (`,` $shape^)? attr-dict `:` functional-type(operands, results)"

    def scale_factors(self) -> tuple[float, ...] | None:
        """Output over input per axis, where it is given."""
        return None if self.scales is None else tuple(float(scale) for scale in self.scales.get_values())

    def resamplings(self) -> tuple[Resampling, ...]:
        """How each axis is resampled."""
        count = rank(self.input.type)
        roi = [0.0] * count + [1.0] * count if self.roi is None else [float(edge) for edge in self.roi.get_values()]
        return tuple(
            Resampling(
                self.kind.data,
                self.coordinate.data,
                self.rounding.data,
                self.selector.data,
                self.cubic_coeff.value.data,
                bool(self.exclude_outside.value.data),
                bool(self.antialias.value.data),
                (roi[axis], roi[count + axis]),
            )
            for axis in range(count)
        )

    def check(self) -> None:
        numbers(self, "C1", self.input.type)
        count, scales = rank(self.input.type), self.scale_factors()
        given = self.shape is not None or self.output_dims is not None or scales is not None
        require(given, f"C2: {self.name} needs its new lengths: a shape operand, output_dims or scales")
        if self.shape is not None:
            require(
                self.output_dims is None, f"C4: {self.name} has a shape operand and output_dims, expected one of them"
            )
            shape_operand(self, "C4", self.shape, "shape")
        lists = {
            "output lengths": count
            if scales is not None and self.shape is None and self.output_dims is None
            else len(self._lengths()),
            "scales": count if scales is None else len(scales),
            "half of roi": count if self.roi is None else len(self.roi) / 2,
        }
        for label, length in lists.items():
            require(length == count, f"C3: {self.name} has {length:g} {label}, its input has rank {count}")
        require(
            min(scales or (1.0,)) > 0, f"C5: scales of {self.name} must be positive, but they are {list(scales or ())}"
        )
        crops = self.coordinate.data is Coordinate.TF_CROP_AND_RESIZE
        require(not crops or self.roi is not None, f"C6: {self.name} with tf_crop_and_resize needs roi")

    def length_requirements(self) -> Iterator[LengthRequirement]:
        for axis, (length, size) in enumerate(zip(dims(self.input.type), self._lengths(), strict=True)):
            yield at_least("C7", f"{self.name} makes axis {axis} {{left}} long", size, 0)
            yield at_least("C7", f"{self.name} has nothing to repeat on axis {axis} of length 0", length, 1, where=size)

    def _lengths(self) -> tuple[Dim, ...]:
        if self.shape is not None:
            return shape_operand(self, "C4", self.shape, "shape")
        if self.output_dims is not None:
            return self.output_dims.dims()
        return tuple(_scaled(n, s) for n, s in zip(dims(self.input.type), self.scale_factors() or (), strict=True))

    def infer(self) -> Sequence[Tensor]:
        return [with_dims(self.input.type, self._lengths())]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        from mlirt.dialects.interpolation import resample
        from mlirt.dialects.symbol_values import resolve
        from mlirt.dialects.wide_arithmetic import narrow, widen

        x, *shape = arrays
        sizes = [int(size) for size in shape[0]] if shape else resolve(self, self._lengths(), arrays)
        given = self.scale_factors()
        y = x if self.kind.data is ResizeKind.NEAREST else widen(x)
        outside = np.zeros((1,) * x.ndim, np.bool_)
        for axis, (how, length, size) in enumerate(zip(self.resamplings(), x.shape, sizes, strict=True)):
            scale = size / length if given is None else given[axis]
            if size == length and scale == 1 and how.coordinate is not Coordinate.TF_CROP_AND_RESIZE:
                continue
            y = resample(y, axis, *how.taps(length, size, scale))
            beyond = how.outside(length, size, scale)
            outside = outside | beyond.reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        if outside.any():
            y = np.where(outside, self.extrapolation_value.value.data, y)
        return [narrow(y, x.dtype)]


def _scaled(length: Dim, scale: float) -> Dim:
    """floor(length * scale), where the scale is the simplest fraction that single precision cannot tell from it."""
    from fractions import Fraction  # it brings decimal arithmetic, and rt-opt starts without both

    for limit in (16, 256, 4096, 1 << 20):
        factor = Fraction(scale).limit_denominator(limit)
        if abs(float(factor) - scale) <= _CLOSE * abs(scale):
            return floor_div(length * factor.numerator, factor.denominator)
    exact = Fraction(scale)
    return floor_div(length * exact.numerator, exact.denominator)
