"""Where the ops that remarks are about stand in the text of the input."""

from __future__ import annotations

import re
from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mlirt.dialects.locations import names
from mlirt.dialects.source_parser import SourceMap, SourcePosition
from mlirt.passes.remarks import Remark
from mlirt.tools.diagnostic import Diagnostic

_PLACE = re.compile(r"(?P<file>.*):(?P<line>\d+):(?P<column>\d+)")


def places_of(module: ModuleOp, source: SourceMap) -> Callable[[Operation], str]:
    """The place of an op: its own, or that of the op that was read with one of its layers' names; else the file."""
    named: dict[str, int] = {}
    for op, start in source.starts.items():
        for name in names(op.location):
            named.setdefault(name, start)

    def place(op: Operation) -> str:
        if op in source.starts:
            return str(source.at(source.starts[op]))
        found = [named[name] for name in names(op.location) if name in named]
        return str(source.at(found[-1])) if found else source.file

    return place


def diagnostic_of_remark(remark: Remark) -> Diagnostic:
    """The remark as a diagnostic, which `// expected-remark@+1 {{..}}` can expect."""
    match = _PLACE.fullmatch(remark.place)
    position = SourcePosition(match["file"], int(match["line"]), int(match["column"])) if match is not None else None
    return Diagnostic(remark.place, position, str(remark), "remark")
