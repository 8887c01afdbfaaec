"""Gated products, silu(x U) * (x V): one product with the joined matrices, whose halves are gated."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, binary, constant, op, rule, value

x = value("x")
GATE = op(MatrixMultiplyOp, x, constant("u"), lhs_op="none", rhs_op="none").named("gate")
LINEAR = op(MatrixMultiplyOp, x, constant("v"), lhs_op="none", rhs_op="none").named("linear")
SIGMOID = op(ActivationOp, GATE, kind="sigmoid").named("sigmoid")
SILU = binary("prod", GATE, SIGMOID).named("silu")


@dataclass(frozen=True)
class JoinGatedProductsPass(RulePass):
    """Make one product of the two of a gated layer, from `least` multiplications on.

    Before:

        %a = trt.matrix_multiply %x, %u : (tensor<8x64xf32>, tensor<64x24xf32>) -> tensor<8x24xf32>
        %s = trt.activation sigmoid %a : (tensor<8x24xf32>) -> tensor<8x24xf32>
        %h = trt.elementwise prod %a, %s : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>
        %b = trt.matrix_multiply %x, %v : (tensor<8x64xf32>, tensor<64x24xf32>) -> tensor<8x24xf32>
        %y = trt.elementwise prod %h, %b : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xf32>

    After:

        %j = trt.matrix_multiply %x, %uv : (tensor<8x64xf32>, tensor<64x48xf32>) -> tensor<8x48xf32>
        %a = trt.slice %j {start = #trt.dims<["0", "0"]>, ..} : (tensor<8x48xf32>) -> tensor<8x24xf32>
        %b = trt.slice %j {start = #trt.dims<["0", "24"]>, ..} : (tensor<8x48xf32>) -> tensor<8x24xf32>
        ..
    """

    name = "join-gated-products"
    least: int = option(0, at_least=0)

    @rule(binary("prod", SILU, LINEAR))
    def join(
        self,
        m: Match,
        gate: MatrixMultiplyOp,
        linear: MatrixMultiplyOp,
        sigmoid: ActivationOp,
        silu: ElementwiseOp,
        x: SSAValue,
        u: SSAValue,
        v: SSAValue,
    ) -> Outcome:
        import numpy as np

        shape = dims(gate.output.type)
        work = 2 * m.array(u).size * np.prod([length for length in shape[:-1] if isinstance(length, int)])
        if shape != dims(linear.output.type) or m.array(u).shape[:-1] != m.array(v).shape[:-1]:
            return "{gate} and {linear} have different shapes"
        if work < self.least:
            return f"both products take {work:.0f} multiplications, fewer than {self.least}"
        both = m.constant(np.concatenate([m.array(u), m.array(v)], -1), "joined", gate)
        joined = m.make_after([gate, linear], MatrixMultiplyOp, x, both, **gate.properties)
        left, right = (self._columns(m, joined, one, k) for k, one in enumerate((gate, linear)))
        sigma = m.make_after([sigmoid], ActivationOp, left, **sigmoid.properties)
        gated = m.make_after([silu], ElementwiseOp, left, sigma.output, kind="prod")
        return m.make_after([m.root], ElementwiseOp, gated.output, right, kind="prod")

    def _columns(self, m: Match, joined: MatrixMultiplyOp, part: MatrixMultiplyOp, number: int) -> SSAValue:
        """One half of a joined product."""
        *outer, columns = dims(part.output.type)
        start, stride = [*([0] * len(outer)), number * columns], [1] * (len(outer) + 1)
        cut = m.make_after([part], SliceOp, joined.output, start=start, size=[*outer, columns], stride=stride)
        return cut.output
