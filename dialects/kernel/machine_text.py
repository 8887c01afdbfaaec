"""Texts of instructions that need no word of their own: PTX for a GPU, a function of LLVM for a CPU.

An instruction that one line of PTX or one intrinsic of LLVM computes is whole with its definition: generated source
holds the line, and `ptx_instruction` or `llvm_function` in the libraries of words makes of it what numba compiles.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute

from mlirt.dialects.kernel.buffers import SHARED
from mlirt.dialects.kernel.instruction import element_of, spec_of
from mlirt.dialects.kernel.instruction_fields import PURE, Text


def ptx(template: str, hint: str) -> Text:
    """A line of PTX that names fields: `"popc.b32 {result}, {value};"`; braces of PTX itself are doubled.

    A number is a register, a fragment `{a, b, ..}`, one for each element (of 16 bits at least). Memory and the index
    behind it are one operand, the address: of 32 bits in shared memory, else a generic one. Attributes are written as
    they are.
    """

    def parameters(x: Any) -> str:
        spec = spec_of(x.op)
        made = {name: _registers(getattr(x, name)) for name in spec.results}
        taken = _operands(x)
        names, position = dict[str, str](), 0
        for name, kind in [*made.items(), *taken.items()]:
            count = _count(kind)
            names[name] = ", ".join(f"${position + k}" for k in range(count))
            names[name] = f"{{{names[name]}}}" if "*" in kind else names[name]
            position += count
        line = template.format_map(cast("dict[str, Any]", vars(x)) | names)
        results = ", ".join(f'"{kind}"' for kind in made.values()) or "None"
        arguments = "".join(f'"{kind}", ' for kind in taken.values()).rstrip()
        flags = ", pure=True" if spec.effects == PURE else ", convergent=True" if spec.scope != "thread" else ""
        return f'"{line}", {results}, ({arguments}){flags}'

    return Text("ptx_instruction", parameters, hint=hint)


def _operands(x: Any) -> dict[str, str]:
    """What each operand of the line is; an index behind memory is a part of the address."""
    found: dict[str, str] = {}
    is_index = False
    for name in spec_of(x.op).operands:
        type_ = getattr(x, name)
        if is_index:
            is_index = False
        elif isinstance(type_, MemRefType):
            is_index, buffer = True, cast("MemRefType[Attribute]", type_)
            found[name] = f"{element_of(buffer)}{'[shared]' if buffer.memory_space == SHARED else '[]'}"
        else:
            found[name] = _registers(type_)
    return found


def _registers(type_: Attribute) -> str:
    """The type of a number, with a count that of a fragment: `float32`, `float32*4`."""
    if not isinstance(type_, VectorType):
        return str(element_of(type_))
    fragment = cast("VectorType[Attribute]", type_)
    return f"{element_of(fragment)}*{fragment.get_shape()[0]}"


def _count(kind: str) -> int:
    return int(kind.partition("*")[2] or 1)


def llvm(function: str) -> Text:
    """A function of LLVM such as `llvm.ctpop`, of numbers of one type, which its name does not have yet."""

    def word(x: Any) -> str:
        return f"llvm_function_{len(spec_of(x.op).operands)}"

    return Text(word, f'"{function}"', words=[f"llvm_function_{count}" for count in (1, 2, 3)])
