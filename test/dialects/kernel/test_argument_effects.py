"""Which arguments of a kernel may be written through: results and what is unknown, never what is only read."""

from __future__ import annotations

import pytest
from contractions import PROBLEMS, convolution_text, product_text
from gpu_kernels import lower_to_threads
from lowered_network import parse_module

from mlirt.dialects.kernel.argument_effects import written_arguments
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.plan.expression import PointerAttr
from mlirt.dialects.plan.ops import BufferOp, LaunchOp


@pytest.mark.parametrize(
    "text",
    [
        product_text((64, 64), (64, 64), (64, 64), "f16", (False, False)),
        product_text((40, 520), (520, 48), (40, 48), "f32", (False, False)),
        convolution_text(PROBLEMS["odd channels"], "f16"),
    ],
    ids=["product", "split product", "convolution"],
)
def test_inputs_and_weights_are_only_read(text: str) -> None:
    module, context = parse_module(text)
    lowered = lower_to_threads(module, context, "cuda")
    kernels = {op.sym_name.data: op for op in lowered.body.block.ops if isinstance(op, FuncOp)}
    for launch in (op for op in lowered.walk() if isinstance(op, LaunchOp)):
        written = written_arguments(kernels[launch.kernel_name()])
        targets = [launch.arguments()[place] for place in written]
        assert targets
        for target in targets:
            assert isinstance(target, PointerAttr)
            assert isinstance(launch.buffers[target.operand.data].owner, BufferOp)


def test_a_pointer_that_goes_into_an_unknown_op_counts_as_written() -> None:
    module, _ = parse_module("""
    kernel.func @k(%x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>, %s: index) {
      %i = arith.constant 0 : index
      %v = kernel.load %x[%i] strides[%s] {static_strides = array<i64: -9223372036854775808>} : memref<?xf32> -> f32
      kernel.store %v, %y[%i] strides[%s] {static_strides = array<i64: -9223372036854775808>} : f32, memref<?xf32>
      "memref.cast"(%z) : (memref<?xf32>) -> memref<8xf32>
      kernel.return
    }""")
    (kernel,) = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    assert written_arguments(kernel) == [1, 2]
