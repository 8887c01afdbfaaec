"""Products with weights of few bits as networks of fused ops, for tests of the kernels of each target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from fused_network import Network as FusedNetwork
from fused_network import context, network_of
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, f16, f32
from xdsl.ir import Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.fused_op import YieldOp, scalar_region
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.packed_codes import default_zero, row_bytes
from mlirt.dialects.symbolic import Dim, sym
from mlirt.dialects.tensor_types import tensor
from mlirt.dialects.trt.constant import ConstantOp

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class PackedCase:
    """`zero` is `one` for all, `bytes` or `floats` for each block; `bias` has a number for each column."""

    rows: int
    columns: int
    depth: int
    block: int
    bits: int = 4
    zero: str = "one"
    batch: tuple[int, ...] = ()
    bias: bool = False
    symbolic: bool = False
    halves: bool = False
    """Whether activations are float16."""
    half_scales: bool = False
    float4: bool = False
    """Whether codes are 4-bit floats."""

    def blocks(self) -> int:
        return -(-self.depth // self.block)


class PackedNetwork:
    """The module of a case, and inputs for it."""

    def __init__(self, case: PackedCase) -> None:
        self.ctx = context()
        rng = np.random.default_rng(case.rows * 31 + case.columns * 7 + case.depth)
        width = row_bytes(case.depth, case.block, case.bits)
        codes = rng.integers(0, 256, (case.columns, int(str(width))), dtype=np.uint8)
        shape = (case.columns, case.blocks())
        scale = rng.uniform(0.01, 0.1, shape).astype(np.float16 if case.half_scales else np.float32)
        zero = default_zero(case.bits)
        if case.zero == "bytes":
            zero = rng.integers(0, 1 << case.bits, shape).astype(np.uint8)
        elif case.zero == "floats":
            zero = rng.uniform(0, 1 << case.bits, shape).astype(np.float32)
        element = f16 if case.halves else f32
        outer: list[Dim] = [sym("n"), *case.batch[1:]] if case.batch and case.symbolic else list(case.batch)
        rows: Dim = sym("m") if case.symbolic and not case.batch else case.rows
        inputs = [tensor(element, [*outer, rows, case.depth])]
        if case.bias:
            inputs.append(tensor(f32, [case.columns]))

        def build(network: FusedNetwork) -> Sequence[SSAValue]:
            lhs, *bias = network.inputs
            weights = [
                network.add(ConstantOp.from_array(array, self.ctx.weights, name))
                for array, name in ((codes, "codes"), (scale, "scale"), (zero, "zero"))
            ]
            result = tensor(element, [*outer, rows, case.columns])
            access = [AccessAttr.of([iteration(len(outer) + 1)])] * len(bias)
            region = _epilogue(case)
            sizes = case.bits, case.block
            return [network.add(PackedMatmulOp(lhs, weights, result, region, *sizes, bias, access, case.float4))]

        self.module: ModuleOp = network_of(inputs, build)
        dtype = np.float16 if case.halves else np.float32
        self.inputs: dict[str, Array] = {
            "input0": rng.standard_normal((*case.batch, case.rows, case.depth)).astype(dtype)
        }
        if case.bias:
            self.inputs["input1"] = rng.standard_normal(case.columns).astype(np.float32)
        self.module.verify()


def _epilogue(case: PackedCase) -> Region:
    region = scalar_region([f32] * (1 + case.bias))
    total: SSAValue = region.block.args[0]
    for value in region.block.args[1:]:
        op = arith.AddfOp(total, value)
        region.block.add_op(op)
        total = op.results[0]
    if case.halves:
        narrow = arith.TruncFOp(total, f16)
        region.block.add_op(narrow)
        total = narrow.results[0]
    region.block.add_op(YieldOp(operands=[[total]]))
    return region
