"""What all parts of CUDA source share: the width of indices, words with parameters, and scalar functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import BFloat16Type, Float16Type, VectorType
from xdsl.ir import Operation, SSAValue

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
from mlirt.codegen.numba_cuda.vocabulary import VOCABULARY
from mlirt.codegen.python_expressions import Expression, Rule, call
from mlirt.codegen.python_source import PythonSource
from mlirt.dialects.kernel.buffers import fragment, length
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.fragment_map import (
    MapFragmentOp,
    element_type,
)


class ScalarFunction(PythonSource):
    """The text of a scalar function, without its name."""

    target = "cuda"
    vocabulary = VOCABULARY

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        super().__init__()
        self.rules = rules

    def body_of(self, op: MapFragmentOp) -> str:
        if isinstance(fragment(op.result).get_element_type(), Float16Type | BFloat16Type):
            self.rules = {**self.rules, "arith.divf": call("divide_closely"), "math.erf": call("erf_closely")}
        arguments, (*ops, last) = op.body.block.args, op.body.block.ops
        assert isinstance(last, YieldOp)
        with self.block_of(f"({', '.join(self.names.define(one) for one in arguments)}):"):
            for one in arguments:
                self.define_inline(one, from_stored(self.names.define(one), one.type))
            self.ops(ops)
            (value,) = last.values
            self.line(f"return {to_stored(self.text(value), value.type)}")
        return "\n".join(self.lines)


class WordSource(PythonSource):
    """The lines of one kernel. With `narrow`, indices are 32 bits wide; with `separate`, sums of products are never
    rounded once only; with `close`, functions have no branches and may be off by some of their last bits.
    """

    target = "cuda"
    vocabulary = VOCABULARY

    def __init__(self, narrow: bool, separate: bool, close: bool) -> None:
        super().__init__()
        self.narrow = narrow
        self.rules = NARROW_EXPRESSIONS if narrow else CUDA_EXPRESSIONS
        if separate:
            self.rules = {**self.rules, **SEPARATE_PRODUCTS}
        if close:
            self.rules = {**self.rules, **CLOSE_FUNCTIONS}
        self.definitions: dict[str, str] = {}
        """The names of words with parameters, by the text that makes them."""
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
        return self.definitions[text]

    def define_word(self, op: Operation, text: str) -> None:
        """The one result of a pure word: inside of its reader where that is short enough, else a line of its own."""
        if self.is_inlined(op, Expression(text)):
            self.define_inline(op.results[0], Expression(text))
        else:
            self.define(op.results[0], text)

    def functions(self) -> list[str]:
        """The lines of the scalar functions that fragments are mapped by."""
        return [line for body, name in self.bodies.items() for line in [f"def {name}{body}", "", ""]]

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
