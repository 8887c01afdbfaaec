"""The ops of a module as texts that can be compared: one for each op of a function, with names that stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from operator import is_

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.ir_printer import IrPrinter
from mlirt.dialects.locations import names

_DIMS = re.compile(r'tensor<(?P<sizes>[^<>,]*x)(?P<element>\w+), #trt\.dims<\[(?P<dims>"[^\]]*")\]>>')
_MAX_LIST_LENGTH = re.compile(r"(?P<head>dense<)(?P<body>[^<>]{80,})>")
_MAX_LINE_LENGTH = 600


@dataclass(frozen=True)
class OpText:
    """An op with the ops that it reads; `key` is the same as long as the op lives."""

    key: int
    name: str
    layers: tuple[str, ...]
    text: str
    reads: tuple[int, ...]

    @property
    def title(self) -> str:
        """Its layers, else its name."""
        return " + ".join(self.layers) or self.name


@dataclass
class Texts:
    """Makes the texts of one module after another; a value keeps its name as long as it lives.

    The printer's numbers would change behind each op that a pass puts in, and differences show what did not change.
    """

    _keys: dict[Operation, int] = field(default_factory=dict[Operation, int])
    _names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    _known: dict[Operation, tuple[list[object], OpText]] = field(
        default_factory=dict[Operation, tuple[list[object], OpText]]
    )
    _numbers: int = 0

    def of(self, module: ModuleOp) -> list[OpText]:
        """Each op of each function, in order; functions of kernels are one text each."""
        ops = list(_units(module))
        keys = {op: self._keys.setdefault(op, len(self._keys)) for op in ops}
        self._name(ops)
        return [self._text(op, keys) for op in ops]

    def _name(self, ops: list[Operation]) -> None:
        """Names for new values: the hint where nothing that lives has it, as after a rewrite that handed it on."""
        live = [value for op in ops for value in (*_arguments(op), *op.results)]
        names_now = {value: self._names[value] for value in live if value in self._names}
        taken = set(names_now.values())
        for value in live:
            if value not in names_now:
                names_now[value] = self._free_name(value.name_hint, taken)
                taken.add(names_now[value])
        self._names = names_now

    def _free_name(self, hint: str | None, taken: set[str]) -> str:
        if hint is not None and hint not in taken:
            return hint
        base = f"{hint}_" if hint is not None else ""
        while True:
            self._numbers += 1
            if f"{base}{self._numbers}" not in taken:
                return f"{base}{self._numbers}"

    def _text(self, op: Operation, keys: dict[Operation, int]) -> OpText:
        """The text of an op; printing is slow, and most passes leave most ops as they are."""
        parts = list(_parts(op))
        known = self._known.get(op)
        if known is None or len(known[0]) != len(parts) or not all(map(is_, known[0], parts)):
            known = self._known[op] = (parts, self._printed(op, keys))
        return known[1]

    def _printed(self, op: Operation, keys: dict[Operation, int]) -> OpText:
        stream = StringIO()
        _Printer(stream=stream).print_named(op, self._names)
        reads = dict.fromkeys(
            keys[value.owner]
            for inner in op.walk()
            for value in inner.operands
            if isinstance(value.owner, Operation) and value.owner in keys and value.owner is not op
        )
        return OpText(keys[op], op.name, tuple(names(op.location)), legible(stream.getvalue()), tuple(reads))


def _units(module: ModuleOp) -> Iterator[Operation]:
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and not op.is_declaration and len(op.body.blocks) == 1:
            yield from op.body.block.ops
        else:
            yield op


def _arguments(op: Operation) -> Iterator[SSAValue]:
    """The arguments of the function that an op is the first of."""
    block = op.parent_block()
    if block is not None and block.first_op is op and isinstance(block.parent_op(), FuncOp):
        yield from block.args


def _parts(op: Operation) -> Iterator[object]:
    """All that the text of an op follows from; attributes do not change, another one takes their place."""
    for inner in op.walk():
        yield inner
        yield from inner.operands
        yield from inner.properties.values()
        yield from inner.attributes.values()
        yield from (result.type for result in inner.results)
        yield inner.location
        yield from inner.successors


class _Printer(IrPrinter):
    def print_named(self, op: Operation, given: dict[SSAValue, str]) -> None:
        """Print an op with these names for what it reads from outside and for its results."""
        for value in (*op.results, *(operand for inner in op.walk() for operand in inner.operands)):
            if value in given:
                self._ssa_values[value] = given[value]
        self.print_op(op)


def legible(text: str) -> str:
    """Names in the place of open dimensions, `tensor<nx3xf32>`, and no long lists of numbers."""
    text = _DIMS.sub(_named_dims, text)
    text = _MAX_LIST_LENGTH.sub(lambda found: f"{found['head']}{found['body'][:60]}..>", text)
    return "\n".join(
        line if len(line) <= _MAX_LINE_LENGTH else f"{line[:_MAX_LINE_LENGTH]}.." for line in text.split("\n")
    )


def _named_dims(found: re.Match[str]) -> str:
    dims = [dim.strip().strip('"') for dim in found["dims"].split('", "')]
    if len(dims) != found["sizes"].count("x"):
        return found[0]
    sizes = [f"({dim})" if re.search(r"\W", dim) else dim for dim in dims]
    return f"tensor<{'x'.join(sizes)}x{found['element']}>"
