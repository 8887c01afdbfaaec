"""Names of values in generated source: the hints of the IR where it has them, never a word with another meaning."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.tensor_types import is_bool

# What indices are called, as long as there are letters.
_LETTERS = "ijklmno"
# The tensor that a layer reads is its input, and no kernel calls the builtin.
_RESERVED = (frozenset(keyword.kwlist) | frozenset(dir(builtins))) - {"input"}


def identifier(hint: str) -> str:
    """A Python identifier close to `hint`."""
    name = re.sub(r"\W+", "_", hint).strip("_") or "v"
    return f"v{name}" if name[0].isdigit() else name


def kernel_name(func: FuncOp) -> str:
    """What a kernel's function is called; raises `OperationError` for a name that would be something else in Python."""
    name = func.sym_name.data
    if not (name.isidentifier() and name.isascii()) or keyword.iskeyword(name):
        raise OperationError(func, f"a kernel cannot be called {name[:80]!r}: expected letters, digits and underscores")
    return name


def default_hint(type_: Attribute) -> str:
    """What a value without a hint is called: by what it is."""
    if isinstance(type_, IndexType):
        return "i"
    if isinstance(type_, MemRefType):
        return "buffer"
    return "flag" if is_bool(type_) else "v"


class Names:
    """One Python name for each value of a function; `taken` are the words that the target's text uses itself."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._used = set(taken) | _RESERVED
        self._of: dict[SSAValue, str] = {}

    def fresh(self, hint: str) -> str:
        """A name that nothing else has."""
        base = name = identifier(hint)
        count = 1
        if base == "i":
            name = next((letter for letter in _LETTERS if letter not in self._used), base)
        while name in self._used:
            name, count = f"{base}_{count}", count + 1
        self._used.add(name)
        return name

    def define(self, value: SSAValue) -> str:
        """The name of a value at its definition; text that is written twice defines it twice."""
        if value not in self._of:
            self._of[value] = self.fresh(value.name_hint or default_hint(value.type))
        return self._of[value]

    def leave_out(self, value: SSAValue) -> None:
        """Let values without a hint be numbered as if this one had none: the compiler lays out loops by such names."""
        if value.name_hint is not None:
            self.fresh(default_hint(value.type))

    def share(self, value: SSAValue, name: str) -> None:
        """Let a value go by a name that is already there."""
        self._of[value] = name

    def find(self, value: SSAValue) -> str | None:
        return self._of.get(value)
