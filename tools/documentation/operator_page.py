"""The page of ONNX operators: which ones the importer reads, from which opset, and where."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from mlirt.frontend.onnx.handlers import Handler, handler_for, supported_ops

_NEWEST = 40

_INTRODUCTION = """\
<!-- Generated from the handlers in frontend/onnx by `make docs`; edit those. -->

# ONNX operators

Models of opset 7 and newer are read. An operator is imported where a handler for it is in `frontend/onnx/ops_*.py`;
{count} of them are. Some forms of an operator may still be refused; the error then names the node, the operator, the
opset and what is not supported. An operator without a handler is refused in the same way, unless ONNX defines it as a
function of other operators: then its body is imported.

Operands broadcast as ONNX has it, also where only a run knows which of two lengths is 1: inputs `[n, 4]` and `[m, 4]`
may be 5 and 5, 1 and 5, or 5 and 1 long. A run in which they differ otherwise is refused, with the node's name and
both lengths. Lengths of one name (`dim_param`) are equal.

Axes of reductions, Squeeze, Unsqueeze, CumSum, Slice and Pad may be inputs of the graph or be computed, as long as
their number is known: the lengths of the results then follow from their values. A run with an axis that there is not is
refused.

"From" is the first opset that the handler knows; where the meaning changed, each form has a handler of its own."""


def operator_page() -> str:
    """The Markdown page; links are relative to docs/."""
    ops = supported_ops()
    lines = [_INTRODUCTION.format(count=len(ops))]
    for domain in sorted({domain for domain, _ in ops}):
        lines += ["", f"## {domain or 'ai.onnx'}", "", "| operator | from | read by |", "|---|---|---|"]
        lines += [_row(domain, name) for own, name in ops if own == domain]
    return "\n".join(lines) + "\n"


def _row(domain: str, name: str) -> str:
    forms = list(_forms(domain, name))
    since = ", ".join(str(opset) for opset, _ in forms)
    files = dict.fromkeys(Path(inspect.getfile(inspect.unwrap(handler))).name for _, handler in forms)
    return f"| `{name}` | {since} | {', '.join(f'[{file}](../frontend/onnx/{file})' for file in files)} |"


def _forms(domain: str, name: str) -> Iterator[tuple[int, Handler]]:
    """The handlers of an operator with the opset at which each starts."""
    known: Handler | None = None
    for opset in range(1, _NEWEST):
        handler = handler_for(domain, name, opset)
        if handler is not None and handler is not known:
            yield opset, handler
        known = handler
