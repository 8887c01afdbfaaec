"""What PyTorch calls for each ONNX operator: a table of functions from a node and its inputs to its outputs.

Inputs that say sizes (HOST_INPUTS) are lists and numbers of Python, all others are tensors on one device. No rule reads
a tensor back or makes one from numbers of the host: such a call cannot be captured in a CUDA graph.
"""

from __future__ import annotations

from onnx_rules import arithmetic, moves, windows
from onnx_rules.node import HOST_INPUTS, Node, Rule, Unsupported

__all__ = ["HOST_INPUTS", "RULES", "Node", "Rule", "Unsupported"]

RULES: dict[str, Rule] = {**windows.RULES, **moves.RULES, **arithmetic.RULES}
