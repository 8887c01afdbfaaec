"""The names that a trained network gives its tensors, kept exactly as name hints of values.

A hint is a word of letters, digits, `_`, `.`, `$` and `-`, and xDSL drops a number at its end (`relu_1` would become
`relu`). So `/` is written `$`, a number at the end follows `-` instead of `_`, a leading digit gets a `.` before it,
and every other byte is `-x` and two hexadecimal digits. `name_of_hint` is the inverse of `hint_of_name`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import OpResult, SSAValue

from mlirt.dialects.interpreter import entry_function, input_names, output_names
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_types import is_tensor
from mlirt.dialects.trt.constant import ConstantOp

RANGES = "trt.ranges"
"""The attribute of a module with the range of each tensor by its name."""
_LAST_NUMBER = re.compile(r"_(\d+)$", re.ASCII)
_OTHERS = re.compile(r"[^\w.$\n]|[$\n]", re.ASCII)
_ESCAPED = re.compile(rb"-x([0-9a-f]{2})")
_MARKED_NUMBER = re.compile(rb"-(\d+)$")


def hint_of_name(name: str) -> str:
    """A name hint from which `name_of_hint` recovers the name."""
    last = _LAST_NUMBER.search(name)
    body, number = (name[: last.start()], f"-{last[1]}") if last else (name, "")
    hint = _OTHERS.sub(_escape, body)
    if hint.startswith("."):
        hint = f"-x2e{hint[1:]}"
    return f".{hint}{number}" if hint[:1].isdigit() else hint + number


def _escape(match: re.Match[str]) -> str:
    if match[0] == "/":
        return "$"
    return "".join(f"-x{byte:02x}" for byte in match[0].encode())


def name_of_hint(hint: str) -> str:
    """The name that a hint stands for; a hint that somebody wrote by hand stands for itself."""
    plain = hint.removeprefix(".").encode().replace(b"$", b"/")
    plain = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), _MARKED_NUMBER.sub(rb"_\1", plain))
    return plain.decode(errors="replace")


def tensor_names(module: ModuleOp) -> dict[SSAValue, str]:
    """A name of its own for each tensor of a network, constants and the insides of loops and branches left out.

    It is the trained network's name where that is known; others are called after their layer: `conv1#0` is the first
    result of `conv1`.
    """
    function = entry_function(module)
    found: dict[SSAValue, str] = dict(zip(function.body.block.args, input_names(function), strict=True))
    taken = set(found.values())
    for op in function.body.block.ops:
        if isinstance(op, ConstantOp):
            continue
        for result in op.results:
            if is_tensor(result.type):
                found[result] = _free(result, taken)
                taken.add(found[result])
    return found


def _free(result: OpResult, taken: Collection[str]) -> str:
    """The name of a result; one that another value bears already is told apart by the layer."""
    own = None if result.name_hint is None else name_of_hint(result.name_hint)
    name = f"{name_of(result.op)}#{result.index}" if own is None or own in taken else own
    while name in taken:
        name += "'"
    return name


def aliases(module: ModuleOp) -> dict[str, SSAValue]:
    """The tensors that the network's outputs are, by the names of the outputs."""
    function = entry_function(module)
    last = function.body.block.last_op
    return dict(zip(output_names(function), last.operands, strict=True)) if isinstance(last, ReturnOp) else {}
