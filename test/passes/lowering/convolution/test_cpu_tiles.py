"""Convolutions of blocked tensors on register tiles, compiled, against the meaning of the op on plain tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from cpu_kernel_runs import widths
from fused_network import Network, context, network_of, t
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Region, SSAValue

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import YieldOp, scalar_region
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.tile import TileForEachOp, TileMultiplyAddLanesOp, TileMultiplyAddOp
from mlirt.dialects.symbolic import Dim, sym
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.lowering.convolution.cpu_packing import pack, pack_depthwise
from mlirt.passes.lowering.convolution.cpu_tile_choice import choose_tile
from mlirt.passes.pipeline import check_ir, run_passes


@dataclass(frozen=True)
class Case:
    """A convolution between a 1 x 1 convolution before it, which makes its input blocked, and none."""

    channels: int
    outputs: int
    height: int
    width: int
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pre: tuple[int, int] = (1, 1)
    post: tuple[int, int] = (1, 1)
    groups: int = 1
    batch: int = 1
    is_first: bool = False
    is_symbolic: bool = False
    has_residual: bool = False
    has_scale: bool = False

    def lengths(self) -> tuple[int, int]:
        height, width = (
            (size + pre + post - dilation * (taps - 1) - 1) // stride + 1
            for size, pre, post, dilation, taps, stride in zip(
                (self.height, self.width), self.pre, self.post, self.dilation, self.kernel, self.stride, strict=True
            )
        )
        return height, width


CASES = {
    "point": Case(32, 48, 7, 9, (1, 1), pre=(0, 0), post=(0, 0)),
    "point of one pixel": Case(64, 64, 1, 1, (1, 1), pre=(0, 0), post=(0, 0), batch=3),
    "three by three": Case(32, 32, 9, 13, batch=2),
    "channels left over": Case(20, 37, 6, 5, has_residual=True),
    "many blocks": Case(16, 80, 5, 14, has_residual=True),
    "stride and dilation": Case(16, 16, 17, 15, stride=(2, 2), dilation=(2, 1), pre=(2, 0), post=(1, 1)),
    "first layer": Case(3, 32, 21, 30, (7, 7), stride=(2, 2), pre=(3, 3), post=(3, 3), is_first=True),
    "first layer without pads": Case(1, 24, 12, 12, (3, 5), pre=(0, 0), post=(0, 0), is_first=True),
    "groups of blocks": Case(64, 96, 8, 8, groups=2),
    "depthwise": Case(48, 48, 10, 11, groups=48, has_residual=True),
    "depthwise with channels left over": Case(24, 24, 13, 9, (5, 5), stride=(2, 1), pre=(2, 2), post=(2, 2), groups=24),
    "depthwise of one block": Case(16, 16, 6, 29, groups=16),
    "scaled by channel": Case(32, 32, 7, 7, (1, 1), pre=(0, 0), post=(0, 0), has_scale=True, batch=2),
    "symbolic": Case(32, 48, 11, 19, is_symbolic=True, has_residual=True, batch=2),
    "symbolic point": Case(32, 32, 6, 10, (1, 1), pre=(0, 0), post=(0, 0), is_symbolic=True),
    "symbolic depthwise": Case(32, 32, 9, 21, groups=32, is_symbolic=True, stride=(2, 2)),
}
_NARROW = ("three by three", "channels left over", "first layer", "depthwise", "symbolic")


def _epilogue(case: Case) -> Region:
    """Nothing below zero of the sum with the bias, times the scale, and the residual."""
    region = scalar_region([f32] * (2 + case.has_scale + case.has_residual))
    block = region.block
    total = _result(block.add_op, arith.AddfOp(block.args[0], block.args[1]))
    if case.has_scale:
        total = _result(block.add_op, arith.MulfOp(total, block.args[2]))
    if case.has_residual:
        total = _result(block.add_op, arith.AddfOp(total, block.args[-1]))
    zero = _result(block.add_op, arith.ConstantOp(FloatAttr(0.0, f32)))
    block.add_op(YieldOp(operands=[[_result(block.add_op, arith.MaximumfOp(total, zero))]]))
    return region


def _result(add: object, op: arith.AddfOp | arith.MulfOp | arith.MaximumfOp | arith.ConstantOp) -> SSAValue:
    assert callable(add)
    add(op)
    return op.results[0]


def _identity() -> Region:
    region = scalar_region([f32])
    region.block.add_op(YieldOp(operands=[[region.block.args[0]]]))
    return region


class Layer:
    """The module of a case, and inputs for it."""

    def __init__(self, case: Case) -> None:
        self.ctx: RtContext = context()
        self.rng = np.random.default_rng(sum(map(ord, repr(case))))
        self.case = case
        spatial: list[int | str] = ["h", "w"] if case.is_symbolic else [case.height, case.width]
        batch: int | str = "n" if case.is_symbolic else case.batch
        height, width = self._lengths()
        self.result = t("float32", batch, case.outputs, str(height), str(width))
        types = [t("float32", batch, case.channels, *spatial)]
        shapes = [(case.batch, case.channels, case.height, case.width)]
        if case.has_scale:
            types.append(t("float32", batch, case.outputs, 1, 1))
            shapes.append((case.batch, case.outputs, 1, 1))
        if case.has_residual:
            types.append(self.result)
            shapes.append((case.batch, case.outputs, *case.lengths()))
        self.module = network_of(types, self._build)
        arrays = [self.rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        self.inputs = {f"input{position}": array for position, array in enumerate(arrays)}

    def _lengths(self) -> tuple[Dim, Dim]:
        case = self.case
        if not case.is_symbolic:
            return case.lengths()
        height, width = (
            (sym(name) + pre + post - dilation * (taps - 1) - 1) // stride + 1
            for name, pre, post, dilation, taps, stride in zip(
                "hw", case.pre, case.post, case.dilation, case.kernel, case.stride, strict=True
            )
        )
        return height, width

    def _constant(self, network: Network, shape: Sequence[int], hint: str) -> SSAValue:
        array = self.rng.standard_normal(shape).astype(np.float32) / np.float32(np.prod(shape[1:]) ** 0.5)
        return network.add(ConstantOp.from_array(array, self.ctx.weights, hint))

    def _build(self, network: Network) -> Sequence[SSAValue]:
        case = self.case
        x, *extras = network.inputs
        if not case.is_first:
            weights = self._constant(network, (case.channels, case.channels, 1, 1), "before")
            one, none = (1, 1), (0, 0)
            op = ConvolutionOp(
                x, weights, x.type, _identity(), stride=one, dilation=one, pre_padding=none, post_padding=none
            )
            x = network.add(op)
        weights = self._constant(network, (case.outputs, case.channels // case.groups, *case.kernel), "weights")
        bias = self._constant(network, (case.outputs,), "bias")
        accesses = [["d1"]]
        if case.has_scale:
            accesses.append(["d0", "d1", "0", "0"])
        if case.has_residual:
            accesses.append(["d0", "d1", "d2", "d3"])
        op = ConvolutionOp(
            x,
            weights,
            self.result,
            _epilogue(case),
            stride=case.stride,
            dilation=case.dilation,
            pre_padding=case.pre,
            post_padding=case.post,
            groups=case.groups,
            extras=[bias, *extras],
            access=[AccessAttr.of([sym(name) if name != "0" else 0 for name in one]) for one in accesses],
        )
        return [network.add(op)]


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("name", CASES)
def test_a_convolution_gives_what_it_means(name: str, bits: int) -> None:
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
    steps = [op for op in layer.module.walk() if isinstance(op, TileMultiplyAddOp | TileMultiplyAddLanesOp)]
    assert steps
    assert any(isinstance(op, TileMultiplyAddLanesOp) for op in steps) == ("depthwise" in name)
    plan = CompiledPlan(layer.module, layer.ctx, bits)
    for workers in (1, 2, 3):
        got = plan.run(layer.inputs, workers)
        for key, array in want.items():
            np.testing.assert_allclose(got[key], array, rtol=1e-4, atol=1e-5)


def test_kernels_are_shared_between_sizes() -> None:
    """Two layers of different size and the same structure have one kernel: sizes are arguments."""
    names: list[set[str]] = []
    for height, channels in ((14, 32), (28, 64)):
        layer = Layer(Case(channels, channels, height, height))
        run_passes(layer.module, layer.ctx, "assign-layouts,convert-fused-to-kernel,map-parallel-to-workers")
        kernels = [op for op in layer.module.ops if op.name == "kernel.func"]
        names.append(
            {str(op.properties["sym_name"]) for op in kernels if any(isinstance(i, TileForEachOp) for i in op.walk())}
        )
    assert names[0] == names[1]


def test_packed_weights_lie_panel_by_panel() -> None:
    kernel = np.arange(40 * 20 * 3, dtype=np.float32).reshape(40, 20, 1, 3)
    packed = pack(kernel, 1, 2, 16, 16)
    assert packed.shape == (1, 2, 2, 1, 3, 16, 32)
    assert packed[0, 0, 1, 0, 2, 3, 5] == kernel[5, 19, 0, 2]
    assert packed[0, 1, 0, 0, 1, 7, 7] == kernel[39, 7, 0, 1]
    assert not packed[0, 1, :, :, :, :, 8:].any()
    assert not packed[:, :, 1, :, :, 4:, :].any()
    depthwise = np.arange(20 * 6, dtype=np.float32).reshape(20, 1, 2, 3)
    assert pack_depthwise(depthwise, 16)[1, 1, 2, 3] == depthwise[19, 0, 1, 2]
    assert not pack_depthwise(depthwise, 16)[1, ..., 4:].any()


@pytest.mark.parametrize("bits", [512, 256, 128])
def test_tiles_leave_registers_for_the_factors(bits: int) -> None:
    registers = 32 if bits == 512 else 16
    for length in (1, 7, 14, 49, 56, 400, sym("w")):
        for blocks in (1, 2, 3, 4, 5, 16):
            shape = choose_tile(length, blocks, bits)
            assert shape.pixels * shape.blocks + shape.blocks + 1 <= registers
            assert shape.blocks <= blocks
            assert not isinstance(length, int) or shape.pixels <= length
