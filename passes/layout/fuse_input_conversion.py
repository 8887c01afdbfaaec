"""Fuses the rounding of a float32 tensor to halves into the ops that read it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation

from mlirt.dialects.fused.access import is_elementwise
from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.scalar_builder import conversion_region
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.gpu_architectures import TENSOR_MEMORY, WARPGROUPS, has_instruction
from mlirt.dialects.locations import fuse, name_of
from mlirt.dialects.symbolic import product
from mlirt.dialects.target import HOPPER
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.dialects.typical_sizes import typical_values
from mlirt.passes.layout.layouts.order_costs import Costs
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

Reader = ConvolutionOp | MatmulOp | SoftmaxOp | WindowOp


@dataclass(frozen=True)
class FuseInputConversionPass(RulePass):
    """Let convolutions, products, poolings and softmax read a float32 tensor that is rounded to halves for them.

    In a network of halves this is what the caller gives. A convolution or product does so where its factor is of
    halves, in kernels that load its elements to registers or lay them out for copies by the device; where copies of
    whole boxes are so much faster that they are worth a launch in front, by the estimates of `order_costs.py`, the
    rounding stays. Softmax and pooling compute in float32 anyway, without the rounding. All readers must be such, as
    the launch stays otherwise.

    Before:

        %h = fused.pointwise %x { truncf } : tensor<4x8xf32> -> tensor<4x8xf16>
        %y = fused.matmul %h, %w : (tensor<4x8xf16>, tensor<8x8xf16>) -> tensor<4x8xf16>

    After:

        %y = fused.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf16>) -> tensor<4x8xf16>
    """

    name = "fuse-input-conversion"

    arch: str = HOPPER
    most_readers: int = option(4, at_least=1)

    @rule(op(PointwiseOp).named("conversion"))
    def fuse(self, m: Match, conversion: PointwiseOp) -> Outcome:
        readers = list(dict.fromkeys(use.operation for out in conversion.outputs for use in out.uses))
        if not readers or not _rounds(conversion):
            return None
        if len(readers) > self.most_readers:
            return f"it has {len(readers)} readers, more than {self.most_readers} (most-readers)"
        costs = Costs(
            m.analysis(typical_values),
            has_instruction(self.arch, WARPGROUPS),
            has_tensor_memory=has_instruction(self.arch, TENSOR_MEMORY),
        )
        obstacles = ((one, _obstacle(one, conversion, costs)) for one in readers)
        obstacle = next(((one, reason) for one, reason in obstacles if reason is not None), None)
        if obstacle is not None:
            return obstacle[1].format(name_of(obstacle[0]))
        results = [_read_unrounded(one, conversion, m) for one in readers if isinstance(one, Reader)]
        m.about = results[0]
        m.replaces(readers[0])
        return results[0]


def _rounds(op: PointwiseOp) -> bool:
    """Whether an op rounds all elements of a tensor of float32 to halves, and nothing more."""
    if len(op.inputs) != 1 or len(op.outputs) != 1 or not is_half(element_of(op.outputs[0].type)):
        return False
    first, *rest = op.body.block.ops
    shape = dims(op.outputs[0].type)
    stays = dims(op.inputs[0].type) == shape and is_elementwise(op.access.data[0], shape)
    return stays and element_of(op.inputs[0].type) == f32 and isinstance(first, arith.TruncFOp) and len(rest) == 1


def _obstacle(reader: Operation, conversion: PointwiseOp, costs: Costs) -> str | None:
    """Why an op does not read what the conversion reads; None where it does."""
    value = conversion.outputs[0]
    if reader.parent is not conversion.parent:
        return "{} is in another block"
    if isinstance(reader, SoftmaxOp):
        return None if reader.input is value and value not in reader.extras else "an epilogue reads it"
    if isinstance(reader, WindowOp):
        wide = accumulator_type(reader.epilogue) == f32
        return None if wide and value not in reader.extras else "{} does not compute in float32"
    if not isinstance(reader, ConvolutionOp | MatmulOp):
        return "{} reads elements of the type that it gives"
    if value in reader.extras:
        return "an epilogue reads it"
    factors = [one for one in reader.operands[:2] if one is not value]
    if len(factors) != 1 or element_of(factors[0].type) != element_of(value.type):
        return "{} multiplies nothing of halves with it"
    if isinstance(reader, ConvolutionOp) and reader.kernel is value:
        return "it is the kernel of {}"
    return None if _pays(reader, conversion, costs) else "{} is faster with copies by the device, by a launch and more"


def _pays(reader: ConvolutionOp | MatmulOp, conversion: PointwiseOp, costs: Costs) -> bool:
    """Whether loading through registers costs less than the launch that rounds."""
    before, after = conversion.inputs[0].type, conversion.outputs[0].type
    more = costs.moved(before) - costs.moved(after)
    if isinstance(reader, ConvolutionOp):
        plain, last = costs.convolution(reader)
        rows = costs.laid_out_rows(reader)  # whose copy rounds
        copied = min(plain, costs.transposed(after) + last, rows)
        return min(plain, rows) + more <= costs.launched(before, after) + copied
    *batch, rows, columns = dims(reader.output.type)
    depth = dims(reader.lhs.type)[-2 if reader.transpose_lhs.value.data else -1]
    loaded, copied = costs.product_rates()
    work = 2.0 * costs.number(product([*batch, rows, columns])) * costs.number(depth)
    return work / loaded + more <= work / copied + costs.launched(before, after)


def _read_unrounded(reader: Reader, conversion: PointwiseOp, m: Match) -> Reader:
    """The reader of what the conversion reads: a softmax that ended without a rounding is a new one."""
    source, value = conversion.inputs[0], conversion.outputs[0]
    for position, operand in enumerate(reader.operands):
        if operand is value:
            reader.operands[position] = source
    reader.location = fuse(conversion, reader)
    if not isinstance(reader, SoftmaxOp) or reader.epilogue is not None:
        return reader
    ends = conversion_region(f32, element_of(reader.output.type))
    axis, log, result = reader.axis.value.data, bool(reader.log.value.data), reader.output.type
    made = m.insert(SoftmaxOp(reader.input, axis, log, result=result, epilogue=ends), reader, before=reader)
    made.attributes, made.output.name_hint = dict(reader.attributes), reader.output.name_hint
    reader.output.replace_all_uses_with(made.output)
    m.drop(reader)
    return made


__all__ = ["FuseInputConversionPass"]
