"""Layers that look along axes: reduce, softmax, the largest elements, response normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.lrn import LrnOp
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.topk import TopkOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import BoolSetting, EnumSetting, FloatSetting, IntSetting
from mlirt.tensorrt.layer_enums import LayerType, ReduceOperation, TopKOperation

if TYPE_CHECKING:
    from xdsl.ir import Attribute

    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor

MAX_K = 3840
MAX_WINDOW_LENGTH = 15
_LRN_RANGES = {"alpha": (-1e20, 1e20), "beta": (0.01, 1e5), "k": (1e-5, 1e10)}


class AxesMask(IntSetting):
    """Axes as bits of a number; the op has them as a list."""

    def to_property(self, value: int) -> object:
        return axes_in(value)

    def from_property(self, attribute: Attribute) -> int:
        from xdsl.dialects.builtin import DenseArrayBase

        assert isinstance(attribute, DenseArrayBase)
        return sum(1 << int(axis) for axis in attribute.get_values())


class OneAxisMask(IntSetting):
    """One axis as a bit of a number; the op has its number."""

    def to_property(self, value: int) -> object:
        return value.bit_length() - 1

    def from_property(self, attribute: Attribute) -> int:
        return 1 << super().from_property(attribute)


class IReduceLayer(ILayer):
    """Elements combined along axes (tensorrt-features.md#1.30a, 1.30b)."""

    OP, KIND, TYPE = ReduceOp, "Reduce", LayerType.REDUCE
    op = EnumSetting(ReduceOperation.SUM, "kind")
    axes = AxesMask(0, "axes")
    keep_dims = BoolSetting(False, "keep_dims")


class ISoftMaxLayer(ILayer):
    """Softmax along an axis, by default the third from the last (tensorrt-features.md#1.39)."""

    OP, KIND, TYPE = SoftmaxOp, "SoftMax", LayerType.SOFTMAX
    given_axes = OneAxisMask(0, "axis")

    @property
    def axes(self) -> int:
        if self.given_axes:
            return self.given_axes
        of = self.get_input(0)
        return 1 << max(0, len(of.shape) - 3) if of is not None else 1

    @axes.setter
    def axes(self, axes: int) -> None:
        self.given_axes = axes

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        if self.axes.bit_count() != 1:
            raise InvalidModelError(f"{self.name}: condition: isSingleBit(axes)")
        return ir.op(SoftmaxOp, ir.inputs(), self.properties() | {"axis": self.axes.bit_length() - 1})


class ITopKLayer(ILayer):
    """The largest or smallest elements along an axis, and their indices (tensorrt-features.md#1.40a, 1.40b)."""

    OP, KIND, TYPE, INT32_OUTPUTS = TopkOp, "TopK", LayerType.TOPK, (1,)
    op = EnumSetting(TopKOperation.MAX, "kind")
    k = IntSetting(0, "k")
    axes = OneAxisMask(0, "axis")

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        self._check(ir.input(0))
        return super().emit(ir)

    def _check(self, x: SSAValue) -> None:
        if self.axes.bit_count() != 1 or self.axes.bit_length() > rank(x.type):
            raise InvalidModelError(f"{self.name}: reduceAxes must specify exactly one dimension")
        if not 0 < self.k <= MAX_K:
            raise InvalidModelError(f"{self.name}: condition: k > 0 && k <= MAX_TOPK_K")
        length = dims(x.type)[self.axes.bit_length() - 1]
        if isinstance(length, int) and self.k > length:
            raise InvalidModelError(f"{self.name}: K not consistent with dimensions")


class ILRNLayer(ILayer):
    """Each element against its neighbours in other channels (tensorrt-features.md#1.21)."""

    OP, KIND, TYPE = LrnOp, "LRN", LayerType.LRN
    window_size = IntSetting(1, "window")
    alpha = FloatSetting(1.0, "alpha")
    beta = FloatSetting(1.0, "beta")
    k = FloatSetting(1.0, "k")

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        size = self.window_size
        if not (size % 2 and 1 <= size <= MAX_WINDOW_LENGTH):
            raise InvalidModelError(f"{self.name}: the window is odd and from 1 to {MAX_WINDOW_LENGTH}, got {size}")
        for name, (low, high) in _LRN_RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidModelError(f"{self.name}: {name} is from {low:g} to {high:g}, got {value:g}")
        return super().emit(ir)


class ReduceMethods(Methods):
    """`add_reduce`, `add_softmax`, `add_topk`, `add_lrn`."""

    def add_reduce(self, input: ITensor, op: ReduceOperation, axes: int, keep_dims: bool) -> IReduceLayer:
        return self.graph.add(IReduceLayer, [input], settings={"op": op, "axes": axes, "keep_dims": keep_dims})

    def add_softmax(self, input: ITensor) -> ISoftMaxLayer:
        return self.graph.add(ISoftMaxLayer, [input])

    def add_topk(self, input: ITensor, op: TopKOperation, k: int, axes: int) -> ITopKLayer:
        return self.graph.add(ITopKLayer, [input], outputs=2, settings={"op": op, "k": k, "axes": axes})

    def add_lrn(self, input: ITensor, window: int, alpha: float, beta: float, k: float) -> ILRNLayer:
        settings = {"window_size": window, "alpha": alpha, "beta": beta, "k": k}
        return self.graph.add(ILRNLayer, [input], settings=settings)


def axes_in(mask: int) -> list[int]:
    """The axes whose bits are set."""
    return [axis for axis in range(mask.bit_length()) if mask >> axis & 1]
