"""How the manifest of a plan says that a library computes a launch: there is no code in the plan for it."""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType

from mlirt.dialects.kernel.library_product import RESULT, WORKSPACE, LibraryProductOp
from mlirt.dialects.tensor_types import element_name


def library_record(op: LibraryProductOp) -> dict[str, object]:
    """The record among the kernels; runtime/library_calls.py says what it means."""
    return {
        "name": op.sym_name.data,
        "symbol": "matmul",
        "library": op.library.data,
        "object": {},
        "args": ["ptr" if isinstance(type_, MemRefType) else "i64" for type_ in op.function_type.inputs],
        "written": [RESULT, WORKSPACE],
        "product": {
            "elements": [element_name(element) for element in op.elements],
            "transposed": [bool(one.value.data) for one in (op.transpose_left, op.transpose_right)],
            "activation": op.activation.data.value,
            "rounded": bool(op.rounded.value.data),
            "proposal": op.proposal.value.data,
            "workspace_bytes": op.workspace_bytes.value.data,
        },
    }
