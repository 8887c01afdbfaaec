"""Layers that read images between their samples: resize, grid sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.grid_sample import GridSampleOp
from mlirt.dialects.trt.resize import ResizeOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import BoolSetting, DimsSetting, EnumSetting, FloatSetting, Setting
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.layer_enums import (
    InterpolationMode,
    LayerType,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
    SampleMode,
)

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor

# How many innermost axes each mode may change.
_CHANGEABLE = {InterpolationMode.NEAREST: 8, InterpolationMode.LINEAR: 3, InterpolationMode.CUBIC: 2}


class ScalesSetting(Setting["Sequence[float]"]):
    """A factor for each axis."""

    def accepted(self, value: Any) -> list[float]:
        return [float(scale) for scale in value]

    def from_property(self, attribute: Attribute) -> list[float]:
        data: Any = attribute
        return self.accepted(data.get_values())


class IResizeLayer(ILayer):
    """The input at another size: by `shape`, `scales`, or input 1 (tensorrt-features.md#1.31a to 1.31c)."""

    OP, KIND, TYPE, INPUTS, SHAPE_INPUTS = ResizeOp, "Resize", LayerType.RESIZE, 2, (1,)
    shape = DimsSetting("output_dims")
    scales = ScalesSetting([], "scales")
    resize_mode = EnumSetting(InterpolationMode.NEAREST, "kind")
    coordinate_transformation = EnumSetting(ResizeCoordinateTransformation.ASYMMETRIC, "coordinate")
    selector_for_single_pixel = EnumSetting(ResizeSelector.FORMULA, "selector")
    nearest_rounding = EnumSetting(ResizeRoundMode.FLOOR, "rounding")
    exclude_outside = BoolSetting(False, "exclude_outside")
    cubic_coeff = FloatSetting(-0.75, "cubic_coeff")

    @property
    def align_corners(self) -> bool:
        """Whether the corners of input and output lie on each other (deprecated)."""
        deprecated("coordinate_transformation")
        return self.coordinate_transformation is ResizeCoordinateTransformation.ALIGN_CORNERS

    @align_corners.setter
    def align_corners(self, value: bool) -> None:
        deprecated("coordinate_transformation")
        kinds = ResizeCoordinateTransformation
        self.coordinate_transformation = kinds.ALIGN_CORNERS if value else kinds.ASYMMETRIC

    def properties(self) -> dict[str, object]:
        found = super().properties()
        if not found.get("scales"):
            found.pop("scales", None)
        if self.get_input(1) is not None:
            found.pop("output_dims", None)
        elif not (found.get("scales") or found.get("output_dims")):  # it stays as large as it is
            x = self.get_input(0)
            found["scales"] = [1.0] * (0 if x is None else len(x.shape))
        return found

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        made = super().emit(ir)
        self._check(made[0])
        return made

    def _check(self, result: SSAValue) -> None:
        op = result.owner
        assert isinstance(op, ResizeOp)
        pairs = list(zip(dims(op.input.type), dims(result.type), strict=True))
        changed = [axis for axis, (before, after) in enumerate(pairs) if before != after]
        largest = _CHANGEABLE[self.resize_mode]
        if changed and len(pairs) - changed[0] > largest:
            raise InvalidModelError(
                f"{self.name}: {self.resize_mode.name} resizes the {largest} innermost dimensions at most"
            )


class IGridSampleLayer(ILayer):
    """An image read at given places (tensorrt-features.md#1.43)."""

    OP, KIND, TYPE, INPUTS = GridSampleOp, "GridSample", LayerType.GRID_SAMPLE, 2
    interpolation_mode = EnumSetting(InterpolationMode.LINEAR, "kind")
    align_corners = BoolSetting(False, "align_corners")
    sample_mode = EnumSetting(SampleMode.FILL, "mode")


class SampleMethods(Methods):
    """`add_resize`, `add_grid_sample`."""

    def add_resize(self, input: ITensor) -> IResizeLayer:
        return self.graph.add(IResizeLayer, [input])

    def add_grid_sample(self, input: ITensor, grid: ITensor) -> IGridSampleLayer:
        return self.graph.add(IGridSampleLayer, [input, grid])
