"""What all parts of CUDA source share: the width of indices, words with parameters, and scalar functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import BFloat16Type, Float16Type, IndexType, IntegerType, VectorType
from xdsl.ir import Block, Operation, SSAValue

from mlirt.codegen.numba_cuda.cuda_expressions import (
    CLOSE_FUNCTIONS,
    CUDA_EXPRESSIONS,
    NARROW_EXPRESSIONS,
    SEPARATE_PRODUCTS,
    bare,
    from_stored,
    stored_name,
    to_stored,
)
from mlirt.codegen.numba_cuda.half_results import for_half_results
from mlirt.codegen.numba_cuda.vocabulary import VOCABULARY
from mlirt.codegen.python_expressions import Expression, Rule, call
from mlirt.codegen.python_source import PythonSource
from mlirt.dialects.fused.rounded_values import is_whole
from mlirt.dialects.kernel.buffers import fragment, length
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.fragment_map import (
    MapFragmentOp,
    element_type,
)
from mlirt.dialects.kernel.instruction import Instruction, spec_of
from mlirt.dialects.kernel.instruction_fields import PURE
from mlirt.dialects.kernel.tensor_copy import LoadBoxOp, LoadWindowOp
from mlirt.dialects.kernel.warpgroup import WarpgroupMmaOp

_MAX_WORD_IN_PLACE = 48  # a longer word has a line of its own, before the function
_PLACED = (LoadBoxOp, LoadWindowOp, WarpgroupMmaOp)
_MAX_REPEATED = 26  # a longer index has a line of its own where it is read several times


class ScalarFunction(PythonSource):
    """The text of a scalar function, without its name."""

    target = "cuda"
    vocabulary = VOCABULARY

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        super().__init__()
        self.rules = rules

    def body_of(self, op: MapFragmentOp) -> str:
        element = fragment(op.result).get_element_type()
        if isinstance(element, Float16Type | BFloat16Type):
            close = {"arith.divf": call("divide_closely"), "math.erf": call("erf_closely")}
            self.rules = {**for_half_results(self.rules), **close}
        elif isinstance(element, IntegerType) and _only_rounds(op.body.block):
            self.rules = {**self.rules, "math.erf": call("erf_closely")}
        arguments, (*ops, last) = op.body.block.args, op.body.block.ops
        assert isinstance(last, YieldOp)
        with self.block_of(f"({', '.join(self.names.define(one) for one in arguments)}):"):
            for one in arguments:
                self.define_inline(one, from_stored(self.names.define(one), one.type))
            self.ops(ops)
            (value,) = last.values
            self.line(f"return {to_stored(self.text(value), value.type)}")
        return "\n".join(self.lines)


def _only_rounds(block: Block) -> bool:
    """Whether floats are not compared, and are whole where they become integers: no last bit matters alone."""
    converted = [one.operands[0] for one in block.ops if isinstance(one, arith.FPToSIOp | arith.FPToUIOp)]
    return all(map(is_whole, converted)) and not any(isinstance(one, arith.CmpfOp) for one in block.ops)


class WordSource(PythonSource):
    """The lines of one kernel. With `narrow`, indices are 32 bits wide; with `separate`, sums of products are never
    rounded once only; with `close`, functions have no branches and may be off by some of their last bits.
    """

    target = "cuda"
    vocabulary = VOCABULARY

    def __init__(self, narrow: bool, separate: bool, close: bool) -> None:
        super().__init__()
        self.narrow = narrow
        self.rules = for_half_results(NARROW_EXPRESSIONS if narrow else CUDA_EXPRESSIONS)
        if separate:
            self.rules = {**self.rules, **SEPARATE_PRODUCTS}
        if close:
            self.rules = {**self.rules, **CLOSE_FUNCTIONS}
        self.definitions: dict[str, str] = {}
        """The names of words with parameters, by the text that makes them."""
        self._uses = Counter[str]()
        self.bodies: dict[str, str] = {}
        """The names of scalar functions, by what follows the name."""

    def index(self, text: str) -> str:
        """An expression of type int32 as an index."""
        return text if self.narrow else f"int64({text})"

    def arguments(self, values: Iterable[SSAValue]) -> list[str]:
        """The operands of a word, which says what type each has."""
        return [bare(self.expression(value)).text for value in values]

    def word(self, hint: str, text: str) -> str:
        """The name of a word with parameters."""
        if text not in self.definitions:
            self.definitions[text] = self.names.fresh(hint)
        self._uses[text] += 1
        return self.definitions[text]

    def words_in_place(self) -> None:
        """Write short words that are used once where they are used: `word(parameters)(operands)`."""
        once = [text for text, count in self._uses.items() if count == 1 and len(text) <= _MAX_WORD_IN_PLACE]
        made = {self.definitions.pop(text): text for text in once}
        if made:
            used = re.compile(rf"\b({'|'.join(made)})(?=\()")
            self.lines = [used.sub(lambda match: made[match[0]], line) for line in self.lines]

    def is_inlined(self, op: Operation, expression: Expression) -> bool:
        return super().is_inlined(op, expression) or (self.narrow and _is_short_index(op, expression))

    def define(self, value: SSAValue, expression: str) -> None:
        """As for all targets; the accumulators that a loop of warpgroups starts with stand in its assignment."""
        if _starts_accumulators(value):
            self.define_inline(value, Expression(expression))
        else:
            super().define(value, expression)

    def define_word(self, op: Operation, text: str) -> None:
        """The one result of a pure word: inside of its reader where that is short enough, else a line of its own."""
        if self.is_inlined(op, Expression(text)):
            self.define_inline(op.results[0], Expression(text))
        else:
            self.define(op.results[0], text)

    def functions(self) -> list[str]:
        """The lines of the scalar functions that fragments are mapped by."""
        return [line for body, name in self.bodies.items() for line in _function(name, body)]

    def kernel_map_fragment(self, op: MapFragmentOp) -> None:
        inner = ScalarFunction(self.rules)
        body = inner.body_of(op)
        if body not in self.bodies:
            self.bodies[body] = self.names.fresh("element")
        kinds = [(stored_name(element_type(value)), isinstance(value.type, VectorType)) for value in op.operands]
        arguments = "".join(f'("{name}", {wide}), ' for name, wide in kinds).rstrip()
        element = stored_name(fragment(op.result).get_element_type())
        make = self.word("map", f'map_fragment({self.bodies[body]}, "{element}", {length(op.result)}, ({arguments}))')
        self.define_word(op, f"{make}({', '.join(self.texts(op.operands))})")


def _is_short_index(op: Operation, expression: Expression) -> bool:
    """Whether an index is a multiple that copies and products of warpgroups alone read: it is as short as a name.

    Elsewhere what is written twice would have the compiler fold and order instructions differently.
    """
    if not isinstance(op, arith.MuliOp) or not isinstance(op.result.type, IndexType):
        return False
    has_number = isinstance(op.rhs.owner, arith.ConstantOp)
    is_short = len(expression.text) <= _MAX_REPEATED and op.result.name_hint is None
    return has_number and is_short and all(_reads_a_place(use.operation, op.parent) for use in op.result.uses)


def _reads_a_place(op: Operation, block: Block | None) -> bool:
    """Whether an op of a block is a tensor copy or a product of warpgroups, or adds to an index of one."""
    if isinstance(op, arith.AddiOp):
        return all(isinstance(use.operation, _PLACED) and use.operation.parent is block for use in op.result.uses)
    return isinstance(op, _PLACED) and op.parent is block


def _starts_accumulators(value: SSAValue) -> bool:
    """Whether a pure instruction gives what a loop over products of warpgroups begins to add to, and nothing else."""
    op, loop = value.owner, value.get_user_of_unique_use()
    if not isinstance(op, Instruction) or spec_of(op).effects != PURE or not isinstance(loop, scf.ForOp):
        return False
    carried = zip(loop.iter_args, loop.body.block.args[1:], strict=True)
    return any(
        start is value and isinstance(use.operation, WarpgroupMmaOp) for start, one in carried for use in one.uses
    )


def _function(name: str, body: str) -> list[str]:
    """The lines of a function; one that only returns something has one."""
    header, *lines = body.splitlines()
    return [f"def {name}{header} {lines[0].strip()}"] if len(lines) == 1 else [f"def {name}{body}", "", ""]
