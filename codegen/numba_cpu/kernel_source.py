"""One CPU kernel as Python source: a function of the parameter table, the worker's number and the number of workers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.hints import isa

from mlirt.codegen.numba_cpu.byte_source import is_bytes
from mlirt.codegen.numba_cpu.exact_arithmetic import EXACT_RULES, works_on_int8
from mlirt.codegen.numba_cpu.lane_reductions import LaneReductions
from mlirt.codegen.numba_cpu.lane_source import LaneLoop
from mlirt.codegen.numba_cpu.vocabulary import VOCABULARY
from mlirt.codegen.python_expressions import literal, type_name
from mlirt.codegen.python_names import kernel_name
from mlirt.dialects.kernel.buffers import Memory
from mlirt.dialects.kernel.core import FuncOp, LoadOp, ReturnOp, StoreOp, stride_values
from mlirt.dialects.kernel.tile import TileForEachOp, tile_shape
from mlirt.dialects.kernel.tile_loads import TileLoadTransposedOp
from mlirt.dialects.kernel.tile_pooling import TileMapOp
from mlirt.dialects.kernel.varying import varying_values
from mlirt.dialects.tensor_types import element_name, is_float, is_float8

_LIBRARY = "mlirt.builder.numba_cpu_intrinsics"
_PARAMETERS = ("params", "worker", "workers")
_LINE = 118
# How many rows of a tile are one vector where they become bytes.
ROWS_AT_ONCE = 4

# How many rows of a tile count, and how many elements of each; None for all.
Limits: TypeAlias = "tuple[SSAValue | None, SSAValue | None]"


def kernel_source(func: FuncOp) -> str:
    """The text of a module that defines one kernel."""
    functions = "\n\n\n".join(KernelSource(func).functions())
    return f"{import_line(functions)}\n\n\n{functions}\n"


def import_line(text: str) -> str:
    """The import of all words that a text uses."""
    words = sorted(set(re.findall(r"\w+", text)) & VOCABULARY)
    line = f"from {_LIBRARY} import {', '.join(words)}"
    if len(line) <= _LINE:
        return line
    return f"from {_LIBRARY} import (\n" + "".join(f"    {word},\n" for word in words) + ")"


class KernelSource(LaneReductions):
    """The functions of one kernel: those that work on the vectors of a tile, and the kernel itself."""

    def __init__(self, func: FuncOp) -> None:
        super().__init__()
        self.func = func
        if works_on_int8(func):
            self.rules = {**self.rules, **EXACT_RULES}
        self._tile_functions: list[str] = []
        for name in _PARAMETERS:
            self.names.fresh(name)

    def functions(self) -> list[str]:
        """The text of each function, the kernel last."""
        name = kernel_name(self.func)
        with self.block_of(f"def {name}({', '.join(_PARAMETERS)}):"):
            self._parameters()
            self.ops(self.func.body.block.ops)
        return [*self._tile_functions, "\n".join(self.lines)]

    # --- arguments

    def _parameters(self) -> None:
        written = {op.buffer for op in self.func.walk() if isinstance(op, StoreOp)}
        for number, argument in enumerate(self.func.body.block.args):
            if argument.name_hint is None:
                argument.name_hint = _argument_hint(argument.type, argument in written)
            if argument.first_use is not None:
                self.define(argument, _parameter(f"params[{number}]", argument.type, argument in written))

    def kernel_return(self, op: ReturnOp) -> None:
        """Nothing is left to say."""

    # --- register tiles

    def kernel_tile_load_transposed(self, op: TileLoadTransposedOp) -> None:
        """A limit that is not given is the number of lanes."""
        lanes = tile_shape(op.result.type)[2]
        place = [op.x, op.x_at, op.row_step]
        word, limits = "tile_load_transposed", list[str]()
        if op.rows is not None or op.valid is not None:
            word = f"{word}_first"
            limits = [str(lanes) if limit is None else self.text(limit) for limit in (op.rows, op.valid)]
        self.define(op.result, f"{word}({', '.join([*self.texts(place), *limits, str(lanes)])})")

    def kernel_tile_for_each(self, op: TileForEachOp) -> None:
        """The region becomes a function of a vector, its row and its column; what it uses from outside goes with it."""
        self.line(self._tile_call("tile_for_each", op, "finish", (op.rows, op.valid)))

    def kernel_tile_map(self, op: TileMapOp) -> None:
        self.define(op.result, self._tile_call("tile_map", op, "value", (None, op.valid)))

    def _tile_call(self, word: str, op: TileForEachOp | TileMapOp, hint: str, limits: Limits) -> str:
        """The call of a word with a function made of an op's region; `limits` are rows and elements that count."""
        optional = [value for value in limits if value is not None]
        outside = list(dict.fromkeys([*_captured(op), *optional]))
        for value in outside:
            if self.names.find(value) is None:
                self.define(value, self.text(value))
        function = self._tile_function(op, hint, outside, limits, 1)
        names = ", ".join(self.texts(outside))
        captured = f"({names}{',' if len(outside) == 1 else ''})"
        if isinstance(op, TileMapOp) or not writes_rows_of_bytes(op):
            return f"{word}({self.text(op.tile)}, {function}, {captured})"
        several = self._tile_function(op, hint, outside, (None, None), ROWS_AT_ONCE)
        rows = str(tile_shape(op.tile.type)[0]) if op.rows is None else self.text(op.rows)
        return f"{word}_rows({self.text(op.tile)}, {function}, {several}, {captured}, {rows})"

    def _tile_function(
        self, op: TileForEachOp | TileMapOp, hint: str, outside: Sequence[SSAValue], limits: Limits, rows: int
    ) -> str:
        """Write a function for so many rows at once; gives its name."""
        number = len(self._tile_functions)
        name = f"{self.func.sym_name.data}_{hint if number == 0 else f'{hint}_{number}'}"
        self._tile_functions.append(_TileFunction(self, op, name, outside, limits, rows).text_of_function())
        return name


class _TileFunction(LaneReductions):
    """A function that does something with one vector of a tile."""

    def __init__(
        self,
        kernel: KernelSource,
        op: TileForEachOp | TileMapOp,
        name: str,
        outside: Sequence[SSAValue],
        limits: Limits,
        rows: int,
    ) -> None:
        super().__init__()
        self.rules = kernel.rules
        self.each, self.limits, self.rows = op, limits, rows
        self.name = name
        self.outside = outside
        for value in outside:
            self.names.share(value, self.names.fresh(kernel.text(value)))
        self._constants(op.body.block, kernel)

    def _constants(self, block: Block, kernel: KernelSource) -> None:
        """What the kernel writes inside of expressions, the function does too."""
        inside = {result for op in block.walk() for result in op.results}
        for op in block.walk():
            for operand in op.operands:
                if operand not in inside and operand not in self.outside and _is_constant(operand):
                    self.define_inline(operand, kernel.expression(operand))

    def text_of_function(self) -> str:
        value, row, column, lane = self.each.body.block.args
        for argument, hint in zip(self.each.body.block.args, ("v", "i", "j", "lane"), strict=True):
            argument.name_hint = argument.name_hint or hint
        arguments = [self.names.define(argument) for argument in (value, row, column)]
        self.names.share(lane, "0")
        lanes = tile_shape(self.each.tile.type)[2] * self.rows
        count, (rows, valid) = None, self.limits
        varying = frozenset(varying_values(self.each.body.block, [value, lane]))
        self.line("@inlined")
        with self.block_of(f"def {self.name}({', '.join([*arguments, *self.texts(self.outside)])}):"):
            conditions: list[str] = []
            if rows is not None:
                conditions.append(f"{arguments[1]} < {self.text(rows)}")
            if valid is not None:
                count = self.names.fresh("count")
                self.line(f"{count} = {self.text(valid)} - {arguments[2]} * {lanes}")
                conditions.append(f"{count} > 0")
            self.loop = LaneLoop(lane, lanes, varying, count)
            with self.block_of(f"if {' and '.join(conditions)}:") if conditions else nullcontext():
                self.ops_but_last(self.each.body.block)
                if isinstance(self.each, TileMapOp):
                    self.line(f"return {self.text(self.each.made())}")
            if conditions and isinstance(self.each, TileMapOp):
                self.line(f"return {arguments[0]}")
        return "\n".join(self.lines)

    def kernel_load(self, op: LoadOp) -> None:
        """What is the same for each of several rows is read once for them."""
        if self.rows == 1 or not self.varies(op.result) or _steps(op, self.each.body.block.args[1]) == [self._width()]:
            super().kernel_load(op)
            return
        at, _ = self.lane_address(op)
        self.define(op.result, f"load_repeated({self.text(op.buffer)}, {at}, {self._width()}, {self.rows})")

    def _width(self) -> int:
        return tile_shape(self.each.tile.type)[2]


def writes_rows_of_bytes(op: TileForEachOp) -> bool:
    """Whether the rows of a tile become bytes that lie behind each other, and all else is the same for each row, or
    lies as they do: then several rows are one vector.
    """
    _, row, column, lane = op.body.block.args
    lanes = tile_shape(op.tile.type)[2]
    stores = [inner for inner in op.body.block.ops if isinstance(inner, StoreOp)]
    if op.valid is not None or not stores or not all(is_bytes(store.buffer) for store in stores):
        return False
    for use in (*row.uses, *column.uses, *lane.uses):
        if not isinstance(use.operation, LoadOp | StoreOp) or use.operation not in op.body.block.ops:
            return False
    for inner in op.body.block.ops:
        if inner.regions:
            return False
        if isinstance(inner, LoadOp | StoreOp) and lane in inner.indices:
            steps = _steps(inner, row)
            if _steps(inner, lane) != [1] or steps not in (([lanes],) if isinstance(inner, StoreOp) else ([], [lanes])):
                return False
        elif isinstance(inner, LoadOp | StoreOp) and (row in inner.indices or isinstance(inner, StoreOp)):
            return False
    return True


def _steps(op: LoadOp | StoreOp, index: SSAValue) -> list[int | None]:
    """The distances in memory that an index counts; None for one that is not known."""
    pairs = zip(op.indices, stride_values(op), strict=True)
    steps = [literal(step) if isinstance(step, SSAValue) else step for own, step in pairs if own is index]
    return [step for step in steps if step != 0]


def _captured(op: TileForEachOp | TileMapOp) -> list[SSAValue]:
    """The values from outside that a region uses, numbers left out."""
    inside: set[SSAValue] = set(op.body.block.args)
    for inner in op.body.block.walk():
        inside |= {*inner.results, *(arg for region in inner.regions for block in region.blocks for arg in block.args)}
    used = [operand for inner in op.body.block.walk() for operand in inner.operands]
    return list(dict.fromkeys(value for value in used if value not in inside and not _is_constant(value)))


def _is_constant(value: SSAValue) -> bool:
    return getattr(value.owner, "name", "") == "arith.constant"


def _argument_hint(type_: Attribute, is_written: bool) -> str:
    if isa(type_, Memory):
        return "y" if is_written else "x"
    return "n" if isinstance(type_, IndexType) else "a"


def _held_name(element: Attribute) -> str:
    """The elements of memory as pointers to it are called."""
    return "int8" if is_float8(element) else element_name(element)


def _parameter(word: str, type_: Attribute, is_written: bool) -> str:
    """A word of the parameter table as a value: an address, a whole number, or the bits of a float64."""
    if isa(type_, Memory):
        return f"{'' if is_written else 'const_'}{_held_name(type_.element_type)}_pointer({word})"
    if is_float(type_):
        bits = f"bits_as_float64({word})"
        return bits if type_name(type_) == "float64" else f"{type_name(type_)}({bits})"
    return word if isinstance(type_, IndexType) else f"{type_name(type_)}({word})"
