"""What the importer says when it cannot go on: in one line, the node, what was expected, what came, what to do."""

from __future__ import annotations

from mlirt.errors import UnsupportedError


def not_supported(op_type: str, name: str, opset: int, domain: str, why: str = "") -> UnsupportedError:
    """The refusal of a node for which there is no handler, or of a case that its handler does not cover."""
    where = f"(node {name!r}, opset {opset}, domain {domain or 'ai.onnx'})"
    return UnsupportedError(
        f"{op_type} {where} is not supported yet; {why or 'remove the node or replace it by supported ones'}"
    )
