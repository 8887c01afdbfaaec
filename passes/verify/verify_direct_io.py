"""Checks that layers read inputs and write outputs where these lie, as far as that is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.interpreter import input_names, output_names
from mlirt.dialects.io_formats import IoFormat, input_formats, output_formats
from mlirt.dialects.locations import name_of
from mlirt.errors import InvalidModelError


@dataclass(frozen=True)
class VerifyDirectIoPass(ModulePass):
    """Refuse a network in which a copy to another format stands between a layer and an input or output that has
    `trt.direct`. Nothing is changed.

    Before: `func.func @main(%x: tensor<1x3x8x8xf16, ..> {trt.format = "HWC8", trt.direct}) { %0 = fused.reformat %x ..`
    After: the error `input x: DIRECT_IO, but the layers need it in another format than HWC8`
    """

    name = "verify-direct-io"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and not function.is_declaration:
                _verify(function)


def _verify(function: FuncOp) -> None:
    block, last = function.body.block, function.body.block.last_op
    if not isinstance(last, ReturnOp):
        return
    for name, value, format in zip(input_names(function), block.args, input_formats(function), strict=True):
        copies = [use.operation for use in value.uses if isinstance(use.operation, ReformatOp)]
        if format.direct and copies:
            raise _fault("input", name, format, copies[0])
    for name, value, format in zip(output_names(function), last.operands, output_formats(function), strict=True):
        origin = _origin(value).owner
        if format.direct and isinstance(origin, ReformatOp):
            raise _fault("output", name, format, origin)


def _origin(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, ViewOp):
        value = value.owner.input
    return value


def _fault(kind: str, name: str, format: IoFormat, copy: ReformatOp) -> InvalidModelError:
    return InvalidModelError(
        f"{kind} {name!r}: DIRECT_IO is set, but the layers do not work on the format {format.name}: a reformat "
        f"({name_of(copy)}) would be needed; allow another format, or clear the flag"
    )
