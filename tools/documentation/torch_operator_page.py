"""The page of PyTorch operators: the core set with what becomes of each, and the others that the importer reads."""

from __future__ import annotations

from mlirt.frontend.torch.core_set import TAKEN, WITHOUT_HANDLER, WRITTEN_OTHERWISE
from mlirt.frontend.torch.handlers import families

_INTRODUCTION = """\
<!-- Generated from the handlers in frontend/torch by `make docs`; edit those. -->

# PyTorch operators

[From PyTorch](from-pytorch.md) says how modules are compiled. An ATen operator is imported where a handler for it is in
`frontend/torch/ops_*.py`; {count} overloads are. An operator without a handler is decomposed as PyTorch does it
(`torch.export.default_decompositions`), down to the core ATen set; one with a handler stays whole. What then has no
handler is refused, all of it in one error, and `torch.compile(backend="mlirt")` leaves it to PyTorch.

## The core ATen set

Every operator of the set as PyTorch 2.13 tags it (`torch.Tag.core`); `make test-torch` compares the table with the
tags. {taken} are taken, {otherwise} are written otherwise before the importer sees them, {refused} are refused.

| operator | | |
|---|---|---|"""

_OTHERS = """
## The other operators that are taken

| operator | read by |
|---|---|"""


def torch_operator_page() -> str:
    """The Markdown page; links are relative to docs/."""
    found = families()
    links = {name: f"[{file}](../frontend/torch/{file})" for name, file in found.items()}
    rows = {name: f"| `{name}` | taken | {links[name]} |" for name in TAKEN}
    rows |= {name: f"| `{name}` | written otherwise | {how} |" for name, how in WRITTEN_OTHERWISE.items()}
    rows |= {name: f"| `{name}` | refused | {why} |" for name, why in WITHOUT_HANDLER.items()}
    core = [rows[name] for name in sorted(rows)]
    others = [f"| `{name}` | {link} |" for name, link in links.items() if name not in rows]
    counts = {"taken": len(TAKEN), "otherwise": len(WRITTEN_OTHERWISE), "refused": len(WITHOUT_HANDLER)}
    return "\n".join([_INTRODUCTION.format(count=len(found), **counts), *core, _OTHERS, *others]) + "\n"
