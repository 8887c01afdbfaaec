"""How sizes that only a run tells follow from the values of inputs: noted on the entry function for the plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

# On a function: JSON text, the steps that `runtime/size_program.py` documents.
ATTRIBUTE = "trt.size_program"

Step: TypeAlias = "list[object]"


def note_size_program(function: FuncOp, steps: Sequence[Step]) -> None:
    """Let a function carry the steps; nothing is noted of nothing."""
    function.attributes.pop(ATTRIBUTE, None)
    if steps:
        function.attributes[ATTRIBUTE] = StringAttr(json.dumps(steps))


def size_program_of(function: FuncOp) -> list[Step]:
    """The steps that a function carries."""
    found = function.attributes.get(ATTRIBUTE)
    return cast("list[Step]", json.loads(found.data)) if isinstance(found, StringAttr) else []
