"""Instructions of one line: PTX and LLVM's functions in generated source become what numba compiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from cpu_kernel_runs import compile_sources
from xdsl.dialects.builtin import VectorType, f32
from xdsl.ir import OpResult, SSAValue
from xdsl.parser import Parser

from mlirt.builder.numba_cuda_compiler import ptx_text
from mlirt.codegen.numba_cpu import sources_of as cpu_sources
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.dialects.context import RtContext
from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, READS, SYNCHRONIZES, Text
from mlirt.dialects.kernel.interpreter import run_kernel
from mlirt.dialects.kernel.machine_text import llvm, ptx
from mlirt.dialects.registry import register_dialects
from mlirt.passes.pipeline import run_passes

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site


@instruction
class LoadFourOp(Instruction):
    """Four elements of memory."""

    name = "kernel.load_four"

    buffer: SSAValue = fields.memref("T")
    index: SSAValue = fields.index()
    result: OpResult = fields.result(VectorType, like=lambda x: VectorType(x.T.type, [4]))

    syntax = "$buffer `[` $index `]`"
    effects = READS
    cuda = ptx("ld.volatile.v4.f32 {result}, [{buffer}];", hint="four")


@instruction
class AddSharedOp(Instruction):
    """Add a number to one of shared memory."""

    name = "kernel.add_shared"

    buffer: SSAValue = fields.memref("T")
    index: SSAValue = fields.index()
    value: SSAValue = fields.scalar("T")

    syntax = "$buffer `[` $index `]` `,` $value"
    effects = SYNCHRONIZES
    scope = "warp"
    cuda = ptx("red.shared.add.f32 [{buffer}], {value};", hint="add")


@instruction
class SumOfFourOp(Instruction):
    """The sum of a fragment's first two elements."""

    name = "kernel.sum_of_four"

    value: SSAValue = fields.fragment("T", "n")
    result: OpResult = fields.result(f32)

    syntax = "$value"
    effects = PURE
    cuda = ptx("{{ .reg .f32 a, b, c, d; mov.v4.f32 {{a, b, c, d}}, {value}; add.f32 {result}, a, b; }}", hint="sum")


@instruction
class RotateOp(Instruction):
    """The bits of a number, moved around by so many places."""

    name = "kernel.rotate"

    value: SSAValue = fields.scalar("T")
    count: SSAValue = fields.scalar("T")
    result: OpResult = fields.result(like="value")

    syntax = "$value `by` $count"
    effects = PURE
    cpu = Text("llvm_function_3", '"llvm.fshl"', operands=("value", "value", "count"))
    cuda = ptx("shf.l.wrap.b32 {result}, {value}, {value}, {count};", hint="rotate")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        bits, count = x.value.view(np.uint32), x.count.view(np.uint32) % np.uint32(32)
        return (bits << count | bits >> (np.uint32(32) - count) % np.uint32(32)).view(np.int32)


@instruction
class LargerOp(Instruction):
    """The larger one of two numbers."""

    name = "kernel.larger"

    left: SSAValue = fields.scalar("T")
    right: SSAValue = fields.scalar("T")
    result: OpResult = fields.result(like="left")

    syntax = "$left `,` $right"
    effects = PURE
    cpu = llvm("llvm.smax")
    cuda = ptx("max.s32 {result}, {left}, {right};", hint="larger")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        return np.maximum(x.left, x.right)


THREADS = """
kernel.func @k(%x: memref<?xf32>, %y: memref<?xf32>) attributes {block_size = 32 : i64} {
  %tile = kernel.shared : memref<32xf32, "shared">
  %t = kernel.thread_id : index
  %four = kernel.load_four %x[%t] : memref<?xf32> -> vector<4xf32>
  %sum = kernel.sum_of_four %four : vector<4xf32>
  kernel.add_shared %tile[%t], %sum : memref<32xf32, "shared">, f32
  kernel.store_fragment %four, %y[%t] {offsets = array<i64: 0, 1, 2, 3>} : vector<4xf32>, memref<?xf32>
  kernel.return
}"""
LOOP = """
kernel.func @k(%x: memref<?xi32>, %w: memref<?xi32>, %y: memref<?xi32>, %n: index) {
  kernel.parallel (%n) {
  ^bb0(%i: index):
    %five = arith.constant 5 : i32
    %v = kernel.load %x[%i] strides [1] : memref<?xi32> -> i32
    %u = kernel.load %w[%i] strides [1] : memref<?xi32> -> i32
    %r = kernel.rotate %v by %five : i32, i32 -> i32
    %l = kernel.larger %r, %u : i32, i32 -> i32
    kernel.store %l, %y[%i] strides [1] : i32, memref<?xi32>
    kernel.yield
  }
  kernel.return
}"""


def parsed(text: str) -> tuple[Any, RtContext]:
    context = RtContext()
    register_dialects(context)
    for op in (LoadFourOp, AddSharedOp, SumOfFourOp, RotateOp, LargerOp):
        context.load_op(op)
    module = Parser(context, text).parse_module()
    module.verify()
    return module, context


def test_lines_of_ptx_have_registers_for_fields() -> None:
    source = sources_of(parsed(THREADS)[0])["k"]
    made = dict(line.split(" = ", 1) for line in source.text.splitlines() if "ptx_instruction" in line)
    assert made == {
        "four": """ptx_instruction("ld.volatile.v4.f32 {$0, $1, $2, $3}, [$4];", "float32*4", ("float32[]",))""",
        "sum_1": """ptx_instruction("{ .reg .f32 a, b, c, d; mov.v4.f32 {a, b, c, d}, """
        """{$1, $2, $3, $4}; add.f32 $0, a, b; }", "float32", ("float32*4",), pure=True)""",
        "add": """ptx_instruction("red.shared.add.f32 [$0], $1;", None, ("float32[shared]", "float32",), """
        "convergent=True)",
    }
    text = ptx_text(source, "sm_90")
    for line in ("ld.volatile.v4.f32", "red.shared.add.f32", "mov.v4.f32"):
        assert text.count(line) == 1


@pytest.mark.parametrize("bits", [None, 256])
def test_functions_of_llvm_take_numbers_and_vectors(bits: int | None) -> None:
    x, w = (np.random.default_rng(seed).integers(-(2**31), 2**31, 21).astype(np.int32) for seed in (0, 1))
    module, context = parsed(LOOP)
    meant = np.zeros(21, np.int32)
    (kernel,) = [op for op in module.ops if isinstance(op, FuncOp)]
    run_kernel(kernel, [x, w, meant, 21])
    np.testing.assert_array_equal(meant, np.maximum(np.left_shift(x, 5) | (x.view(np.uint32) >> 27).view(np.int32), w))
    lanes = "" if bits is None else f"{{vector_bits={bits}}}"
    run_passes(module, context, f"map-parallel-to-workers{lanes}")
    made = np.zeros(21, np.int32)
    compile_sources(cpu_sources(module), bits)["k"](x, w, made, 21)
    np.testing.assert_array_equal(made, meant)
