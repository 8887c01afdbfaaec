"""Lowers fused ops to launches of kernels on buffers: the border between tensors and memory."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, LocationAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.context import RtContext
from mlirt.dialects.io_formats import AS_TYPED, output_formats
from mlirt.dialects.plan.ops import OutputOp, ViewOp
from mlirt.dialects.target import Target, TargetKind
from mlirt.dialects.tensor_types import byte_width, element_count, element_of, stored_bytes
from mlirt.errors import InvalidInputError
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.passes.lowering.control.regions import ControlLowering
from mlirt.passes.options import option
from mlirt.tensor_formats import LINEAR

_KINDS: tuple[TargetKind, ...] = ("cpu", "cuda", "reference")


@dataclass(frozen=True)
class ConvertFusedToKernelPass(ModulePass):
    """Lower each fused op of the entry function by the first tactic of its family that applies to the target.

    `tactic` restricts the choice to tactics whose name starts with it (`generic`: loop nests only).

    Before: `%y = fused.pointwise %x {..}` on tensors
    After: `plan.launch %b0, %b1 {kernel = @pointwise_1a2b3c4d, ..}` on buffers, and the `kernel.func` beside the
    function
    `device` says what estimates are made for, such as `h100-pcie` (docs/architecture.md); the usual one if left out.
    With `repeats=false` each op is lowered by itself, also where an equal one has been lowered before.
    """

    name = "convert-fused-to-kernel"

    target: str = "cpu"
    vector_bits: int = option(512, at_least=32)
    arch: str = "sm_90a"
    threads: int = option(2, at_least=1)
    features: tuple[str, ...] = ()
    device: str = ""
    tactic: str = ""
    repeats: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kinds: list[TargetKind] = [kind for kind in _KINDS if kind == self.target]
        if not kinds:
            raise InvalidInputError(f"there is no target {self.target!r}: expected one of {', '.join(_KINDS)}")
        if not isinstance(ctx, RtContext):
            raise InvalidInputError("convert-fused-to-kernel needs a context with a weight store (RtContext)")
        (kind,) = kinds
        features = frozenset(self.features)
        target = Target(kind, self.vector_bits, features, self.arch, self.threads, features, self.device)
        for function in [
            inner for inner in op.body.block.ops if isinstance(inner, FuncOp) and not inner.is_declaration
        ]:
            block = function.body.block
            tensor_ops = list(block.ops)
            lowering = Lowering(target, ctx, op, block, self.tactic, repeats=self.repeats)
            _lower_function(function, tensor_ops, lowering)


def _lower_function(function: FuncOp, tensor_ops: list[Operation], lowering: Lowering) -> None:
    block = lowering.block
    ControlLowering(lowering).ops(tensor_ops)
    if isinstance(block.last_op, ReturnOp):
        _return_buffers(block.last_op, lowering)
    for op in reversed(tensor_ops):
        if not isinstance(op, ReturnOp):
            op.detach()
            op.erase()
    function.function_type = FunctionType.from_lists(
        [arg.type for arg in block.args], [value.type for value in _returned(block.last_op)]
    )


def _returned(op: Operation | None) -> list[SSAValue]:
    assert isinstance(op, ReturnOp)
    return list(op.operands)


def _return_buffers(op: ReturnOp, lowering: Lowering) -> None:
    """The function returns tensors that lie in buffers, densely or in their format, and from the start; others are
    copied first.
    """
    lowering.placements.anchor = op
    function = op.parent_op()
    assert isinstance(function, FuncOp)
    for position, (value, format) in enumerate(zip(list(op.operands), output_formats(function), strict=True)):
        as_typed = format.name != LINEAR or AS_TYPED in function.attributes
        buffer = _own_buffer(value, op, lowering, has_format=as_typed)
        output = OutputOp(buffer, value.type)
        output.location = _location_of(value, op)
        _insert(output, op)
        op.operands[position] = output.result


def _own_buffer(value: SSAValue, op: ReturnOp, lowering: Lowering, *, has_format: bool) -> SSAValue:
    from mlirt.kernels.lib.copying import copy_as_typed, copy_dense

    placements = lowering.placements
    if not (placements.lies_as_typed(value) if has_format else placements.is_dense(value)):
        return (copy_as_typed if has_format else copy_dense)(value, op, lowering)
    place = placements[value]
    dense_bytes = element_count(value.type) * byte_width(element_of(value.type))
    size = stored_bytes(value.type) if has_format else dense_bytes
    if place.offset == 0 and placements.size_of(place.buffer) == size:
        return place.buffer
    view = ViewOp(place.buffer, place.offset, size)
    _insert(view, op)
    return view.buffer


def _insert(new: Operation, before: Operation) -> None:
    block = before.parent
    assert block is not None
    block.insert_op_before(new, before)


def _location_of(value: SSAValue, default: Operation) -> LocationAttr:
    owner = value.owner
    return owner.location if isinstance(owner, Operation) else default.location
