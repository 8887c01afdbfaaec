"""Pooling of blocked tensors on register tiles, compiled, against the meaning of the op on plain tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from cpu_kernel_runs import widths
from fused_network import Network, access, context, network_of, t
from xdsl.dialects.builtin import f32
from xdsl.ir import Region, SSAValue

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import YieldOp, scalar_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.scalar_builder import conversion_region
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.tile_products import TileCombineOp
from mlirt.dialects.symbolic import sym
from mlirt.dialects.tensor_types import element_type, with_element
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.kernels.window.cpu.tiles import Axis
from mlirt.passes.pipeline import check_ir, run_passes


@dataclass(frozen=True)
class Case:
    """A window over the blocked result of a convolution."""

    kind: WindowKind
    height: int
    width: int
    window: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (2, 2)
    pre: tuple[int, int] = (1, 1)
    post: tuple[int, int] = (1, 1)
    channels: int = 32
    batch: int = 1
    counts_padding: bool = False
    is_symbolic: bool = False
    rounds_up: bool = False
    element: str = "float32"


CASES = {
    "largest": Case(WindowKind.MAX, 23, 30),
    "largest, rounded up": Case(WindowKind.MAX, 13, 12, pre=(0, 0), post=(0, 0), rounds_up=True, batch=2),
    "largest of a narrow image": Case(WindowKind.MAX, 4, 2, stride=(1, 1), channels=20),
    "mean": Case(WindowKind.AVERAGE, 17, 25, window=(3, 5), stride=(1, 2), pre=(1, 2), post=(1, 2)),
    "mean with padding": Case(WindowKind.AVERAGE, 11, 19, counts_padding=True, stride=(1, 1), channels=24),
    "mean of all": Case(WindowKind.AVERAGE, 7, 7, window=(7, 7), stride=(1, 1), pre=(0, 0), post=(0, 0)),
    "sum": Case(WindowKind.ADD, 9, 40, window=(2, 2), pre=(0, 0), post=(0, 0)),
    "symbolic": Case(WindowKind.MAX, 9, 33, is_symbolic=True, batch=2),
    "largest byte": Case(WindowKind.MAX, 23, 30, channels=40, element="uint8"),
    "largest int8": Case(WindowKind.MAX, 14, 9, stride=(1, 1), element="int8"),
}
_NARROW = ("largest", "mean", "symbolic", "largest byte")


def _identity() -> Region:
    region = scalar_region([f32])
    region.block.add_op(YieldOp(operands=[[region.block.args[0]]]))
    return region


def _length(size: int, window: int, stride: int, pads: int, rounds_up: bool) -> int:
    package = size + pads - window
    return (-(-package // stride) if rounds_up else package // stride) + 1


class Layer:
    """The module of a case, and an input for it."""

    def __init__(self, case: Case) -> None:
        self.ctx: RtContext = context()
        self.rng = np.random.default_rng(sum(map(ord, repr(case))))
        self.case = case
        shape = (case.batch, case.channels, case.height, case.width)
        dims: list[int | str] = ["n", case.channels, "h", "w"] if case.is_symbolic else list(shape)
        self.module = network_of([t("float32", *dims)], self._build)
        values = self.rng.standard_normal(shape) if case.element == "float32" else self.rng.integers(0, 256, shape)
        self.inputs = {"input0": values.astype(np.float32)}

    def _build(self, network: Network) -> Sequence[SSAValue]:
        case, (x,) = self.case, network.inputs
        square = (case.channels, case.channels, 1, 1)
        is_exact = case.element != "float32"
        array = (np.eye(case.channels).reshape(square) if is_exact else self.rng.standard_normal(square)).astype("f")
        weights = network.add(ConstantOp.from_array(array, self.ctx.weights, "w"))
        one, none = (1, 1), (0, 0)
        point = ConvolutionOp(
            x, weights, x.type, _identity(), stride=one, dilation=one, pre_padding=none, post_padding=none
        )
        lengths: list[int | str] = []
        columns = zip("hw", (case.height, case.width), case.window, case.stride, case.pre, case.post, strict=True)
        for name, size, window, stride, pre, post in columns:
            if case.is_symbolic:
                lengths.append(str((sym(name) + pre + post - window) // stride + 1))
            else:
                lengths.append(_length(size, window, stride, pre + post, case.rounds_up))
        batch: int | str = "n" if case.is_symbolic else case.batch
        value, epilogue = network.add(point), _identity()
        element = element_type(case.element)
        if element != f32:
            typed = with_element(value.type, element)
            indices = access("d0", "d1", "d2", "d3")
            value = network.add(PointwiseOp([value], [indices], [typed], conversion_region(f32, element)))
            epilogue = conversion_region(element_type("int32"), element)
        op = WindowOp(
            case.kind,
            value,
            t(case.element, batch, case.channels, *lengths),
            epilogue,
            window=case.window,
            stride=case.stride,
            dilation=(1, 1),
            pre_padding=case.pre,
            post_padding=case.post,
            count_include_padding=case.counts_padding,
        )
        return [network.add(op)]


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("name", CASES)
def test_a_window_gives_what_it_means(name: str, bits: int) -> None:
    if bits != max(widths()) and name not in _NARROW:
        pytest.skip("tried at the widest vectors")
    layer = Layer(CASES[name])
    want = interpret(layer.module, layer.ctx, layer.inputs)
    run_passes(
        layer.module,
        layer.ctx,
        f"assign-layouts{{lanes={bits // 32}}},convert-fused-to-kernel{{vector_bits={bits}}},"
        f"map-parallel-to-workers{{vector_bits={bits}}}",
    )
    check_ir(layer.module)
    assert any(isinstance(op, TileCombineOp) for op in layer.module.walk())
    plan = CompiledPlan(layer.module, layer.ctx, bits)
    for workers in (1, 3):
        got = plan.run(layer.inputs, workers)
        for key, array in want.items():
            np.testing.assert_allclose(got[key], array, rtol=1e-4, atol=1e-5)


def test_results_whose_windows_stay_inside() -> None:
    axis = Axis(taps=3, stride=2, pre=1, post=1, length=112, count=56)
    assert (axis.first_inside, axis.past_inside) == (1, 56)
    assert not axis.stays_inside
    assert Axis(taps=2, stride=2, pre=0, post=0, length=12, count=6).stays_inside
    rounded = Axis(taps=3, stride=2, pre=0, post=0, length=12, count=6)
    assert (rounded.first_inside, rounded.past_inside) == (0, 5)
    assert not rounded.stays_in_padding
    none = Axis(taps=5, stride=1, pre=2, post=2, length=2, count=2)
    assert none.first_inside == none.past_inside == 2
