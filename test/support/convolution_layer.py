"""One convolution as a network of fused ops, with a 1 x 1 convolution before it that makes its input blocked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from fused_network import Network, context, network_of, t
from window_case import WindowCase
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, StringAttr, f32
from xdsl.ir import Region, SSAValue

from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import YieldOp, scalar_region
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.symbolic import Dim, floor_div, sym
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.kernels.lib.tactics.registry import TACTIC


@dataclass(frozen=True)
class Case(WindowCase):
    """A convolution between a 1 x 1 convolution before it, which makes its input blocked, and a pooling or none."""

    is_first: bool = False
    has_scale: bool = False
    pool: tuple[int, int] | None = None
    pool_kind: WindowKind = WindowKind.MAX


def _pooled(case: Case, lengths: Sequence[Dim]) -> list[Dim]:
    """The lengths of what is pooled."""
    return [floor_div(length, size) for length, size in zip(lengths, case.pool or (1, 1), strict=True)]


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
        height, width = case.lengths_in_type()
        self.pooled = t("float32", batch, case.outputs, *(str(size) for size in _pooled(case, (height, width))))
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

    def use(self, tactic: str) -> None:
        """Have the convolutions with a window lowered by a certain tactic, whether or not it seems the fastest."""
        for op in self.module.walk():
            if isinstance(op, ConvolutionOp) and dims(op.kernel.type)[2:] == self.case.kernel:
                op.attributes[TACTIC] = StringAttr(tactic)

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
        result = network.add(op)
        if case.pool is None:
            return [result]
        one, none = (1, 1), (0, 0)
        window = WindowOp(
            case.pool_kind,
            result,
            self.pooled,
            _identity(),
            window=case.pool,
            stride=case.pool,
            dilation=one,
            pre_padding=none,
            post_padding=none,
        )
        return [network.add(window)]
