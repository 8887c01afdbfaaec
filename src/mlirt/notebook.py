"""`%load_ext mlirt.notebook`: IPython and Jupyter show modules of IR as counts of their ops, with the text below.

Engines, profiles, calibrations and drawings are shown without it.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Any

from mlirt.runtime.notebook_html import bar, table

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_MAX_LETTERS = 200_000
_SHOWN = 12


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython: from now on it shows modules."""
    shell.display_formatter.formatters["text/html"].for_type_by_name("xdsl.dialects.builtin", "ModuleOp", module_html)


def module_html(module: ModuleOp) -> str:
    """A module: how often it has which op, and its text to unfold."""
    counts = Counter(op.name for op in module.walk() if op is not module)
    most = max(counts.values(), default=1)
    rows = [(name, str(count), bar(count / most)) for name, count in counts.most_common(_SHOWN)]
    text = str(module)
    shown = (
        text if len(text) <= _MAX_LETTERS else f"{text[:_MAX_LETTERS]}\n.. and {len(text) - _MAX_LETTERS} letters more"
    )
    return (
        table(f"Module of {sum(counts.values())} ops", ("op", "#count", ""), rows)
        + f"<details><summary>IR</summary><pre>{escape(shown)}</pre></details>"
    )
