"""How the manifest of a plan says that a library computes a launch: there is no code in the plan for it."""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType

from mlirt.builder.plan_writer.record import Fields, Record, record
from mlirt.dialects.kernel.library_convolution import LibraryConvolutionOp
from mlirt.dialects.kernel.library_op import RESULT, WORKSPACE, LibraryOp
from mlirt.dialects.kernel.library_product import LibraryProductOp
from mlirt.dialects.tensor_types import element_name
from mlirt.runtime.library_calls import LibraryConvolution, LibraryProduct
from mlirt.runtime.manifest import Kernel


def family_of(op: LibraryOp) -> str:
    """The family of fused ops that a call stands for."""
    return "convolution" if isinstance(op, LibraryConvolutionOp) else "matmul"


def library_record(op: LibraryOp) -> Record:
    """The record among the kernels; runtime/library_calls.py says what it means."""
    return record(
        Kernel,
        name=op.sym_name.data,
        symbol=family_of(op),
        library=op.library.data,
        objects={},
        args=["ptr" if isinstance(type_, MemRefType) else "i64" for type_ in op.function_type.inputs],
        written=[RESULT, WORKSPACE],
        call=_call(op),
    )


def _call(op: LibraryOp) -> Record:
    common: Fields = {
        "elements": [element_name(element) for element in op.elements],
        "activation": op.activation.data.value,
        "rounded": bool(op.rounded.value.data),
        "proposal": op.proposal.value.data,
        "workspace_bytes": op.workspace_bytes.value.data,
    }
    if isinstance(op, LibraryConvolutionOp):
        stride, dilation, padding = map(list, zip(*op.window(), strict=True))
        window = {"stride": stride, "dilation": dilation, "padding": padding}
        last, groups = bool(op.channels_last.value.data), op.groups.value.data
        return record(LibraryConvolution, **common, **window, channels_last=last, groups=groups)
    assert isinstance(op, LibraryProductOp)
    transposed = [bool(one.value.data) for one in (op.transpose_left, op.transpose_right)]
    return record(LibraryProduct, **common, transposed=transposed)
