"""Resampling of an image to other lengths, in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, FloatAttr, TensorType, f64
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.fused.fused_op import FusedOp, bind_dims, numbers_of
from mlirt.dialects.interpolation import Coordinate, Resampling, ResizeKind, Rounding, Selector
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.dialects.trt.resize import CoordinateAttr, ResizeKindAttr, RoundingAttr, SelectorAttr

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class ResizeOp(FusedOp):
    """Resample each axis to its length in the result; the properties are those of `trt.resize`, whose table says what
    they mean.

    An axis whose length stays and whose scale is 1 is copied.
    C1: the result has the input's rank and element type. C2: `scales` has one entry per axis, `roi` two.

    Example: `%y = fused.resize linear %x {coordinate = #trt<coordinate half_pixel>} : (tensor<1x3x4x4xf32>) ->
    tensor<1x3x8x8xf32>`
    """

    name = "fused.resize"

    kind = prop_def(ResizeKindAttr)
    input = operand_def(TensorType)
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
    assembly_format = "$kind $input attr-dict `:` functional-type(operands, results)"

    def scale_factors(self) -> tuple[float, ...] | None:
        """Output over input per axis, where it is given."""
        return None if self.scales is None else tuple(float(scale) for scale in self.scales.get_values())

    @property
    def crops(self) -> bool:
        return self.coordinate.data is Coordinate.TF_CROP_AND_RESIZE

    def resampling(self, axis: int) -> Resampling:
        """How an axis is resampled."""
        count = rank(self.input.type)
        roi = [0.0] * count + [1.0] * count if self.roi is None else [float(edge) for edge in self.roi.get_values()]
        return Resampling(
            self.kind.data,
            self.coordinate.data,
            self.rounding.data,
            self.selector.data,
            self.cubic_coeff.value.data,
            bool(self.exclude_outside.value.data),
            bool(self.antialias.value.data),
            (roi[axis], roi[count + axis]),
        )

    def is_copied(self, axis: int) -> bool:
        """Whether nothing happens along an axis."""
        before, after = dims(self.input.type)[axis], dims(self.output.type)[axis]
        scales = self.scale_factors()
        return before == after and (scales is None or scales[axis] == 1) and not self.crops

    def scale(self, axis: int, before: int, after: int) -> float:
        """Output over input along an axis with these lengths."""
        scales = self.scale_factors()
        return after / before if scales is None else scales[axis]

    def verify_(self) -> None:
        source, target = self.input.type, self.output.type
        fits = rank(source) == rank(target) and element_of(source) == element_of(target)
        require(fits, f"C1: {self.name} of {source} is not {target}")
        scales, edges = self.scale_factors(), None if self.roi is None else len(self.roi)
        fits = (scales is None or len(scales) == rank(source)) and edges in (None, 2 * rank(source))
        require(fits, f"C2: {self.name} of {source} needs {rank(source)} scales and {2 * rank(source)} roi edges")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        from mlirt.dialects.interpolation import resample
        from mlirt.dialects.wide_arithmetic import narrow, widen

        (x,) = arrays
        shape: Sequence[Dim] = dims(self.output.type)
        y = x if self.kind.data is ResizeKind.NEAREST else widen(x)
        outside = np.zeros((1,) * x.ndim, np.bool_)
        for axis, (before, after) in enumerate(zip(x.shape, numbers_of(shape, bind_dims(self, arrays)), strict=True)):
            how, scale = self.resampling(axis), self.scale(axis, before, after)
            if before == after and scale == 1 and not self.crops:
                continue
            y = resample(y, axis, *how.taps(before, after, scale))
            beyond = how.outside(before, after, scale)
            outside = outside | beyond.reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        if outside.any():
            y = np.where(outside, self.extrapolation_value.value.data, y)
        return [narrow(y, x.dtype)]
