"""The page of PyTorch operators: which ones the importer reads, where, and why not the others of the core set."""

from __future__ import annotations

from mlirt.frontend.torch.core_set import WITHOUT_HANDLER
from mlirt.frontend.torch.handlers import families

_INTRODUCTION = """\
<!-- Generated from the handlers in frontend/torch by `make docs`; edit those. -->

# PyTorch operators

[From PyTorch](from-pytorch.md) says how modules are compiled. An ATen operator is imported where a handler for it is in
`frontend/torch/ops_*.py`; {count} overloads are. An operator without a handler is decomposed as PyTorch does it
(`torch.export.default_decompositions`), down to the core ATen set; one with a handler stays whole. What then has no
handler is refused, all of it in one error, and `torch.compile(backend="mlirt")` leaves it to PyTorch.

## Taken

| operator | read by |
|---|---|"""

_REFUSED = """
## Operators of the core ATen set that are not taken

| operator | why |
|---|---|"""


def torch_operator_page() -> str:
    """The Markdown page; links are relative to docs/."""
    found = families()
    taken = [f"| `{name}` | [{file}](../frontend/torch/{file}) |" for name, file in found.items()]
    refused = [f"| `{name}` | {why} |" for name, why in sorted(WITHOUT_HANDLER.items())]
    return "\n".join([_INTRODUCTION.format(count=len(found)), *taken, _REFUSED, *refused]) + "\n"
