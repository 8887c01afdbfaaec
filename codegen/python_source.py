"""Writes the body of a kernel as Python source: the base that every numba target shares.

Statements are methods found by the op's name (`scf.for` -> `scf_for`), expressions the rules of python_expressions.py.
A pure op with one reader and without a name of its own is written inside its reader, all else is a line `name = ...`.
A target derives from `PythonSource`, adds the methods of its ops, and replaces rules where its words differ.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from mlirt.codegen.instruction_text import write_instruction
from mlirt.codegen.python_expressions import LOOSE, PRODUCT, SUM, Expression, Rule, literal
from mlirt.codegen.python_names import Names
from mlirt.dialects.kernel.core import LoadOp, StoreOp, stride_values
from mlirt.dialects.kernel.fragment_map import MapFragmentOp
from mlirt.dialects.kernel.instruction import Instruction
from mlirt.dialects.locations import name_of
from mlirt.errors import CompileError

_INDENT = "    "
_MAX_INLINE_LENGTH = 60  # a longer expression gets a line and a name


class PythonSource:
    """The lines of one function; make a new one for each."""

    target: Literal["cpu", "cuda"]
    rules: Mapping[str, Rule]
    # Names that the generated text imports, so that no value is called like one of them.
    vocabulary: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = Names(self.vocabulary)
        self._depth = 0
        self._inline: dict[SSAValue, Expression] = {}

    # --- lines

    def line(self, text: str) -> None:
        self.lines.append(_INDENT * self._depth + text if text else "")

    @contextmanager
    def block_of(self, header: str) -> Generator[None]:
        """An indented block under `header`; an empty one gets `pass`."""
        self.line(header)
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1

    # --- values

    def expression(self, value: SSAValue) -> Expression:
        """The text of a value where it is used."""
        if value in self._inline:
            return self._inline[value]
        name = self.names.find(value)
        if name is None:
            owner = value.owner
            where = name_of(owner) if isinstance(owner, Operation) else "a block argument"
            raise CompileError(f"a value of {where} is used in generated source before it is defined")
        return Expression(name)

    def text(self, value: SSAValue, precedence: int = LOOSE) -> str:
        """The text of a value inside of an operator that binds with `precedence`."""
        return self.expression(value).within(precedence)

    def text_for(self, value: SSAValue, variable: SSAValue) -> str:
        """The text of a value that is assigned to a variable; targets whose variables are wider than values say how."""
        return self.text(value)

    def texts(self, values: Iterable[SSAValue]) -> list[str]:
        return [self.text(value) for value in values]

    def arguments(self, values: Iterable[SSAValue]) -> list[str]:
        """The operands of a word that is made for them."""
        return self.texts(values)

    def define(self, value: SSAValue, expression: str) -> None:
        """A line that gives a value its name."""
        self.line(f"{self.names.define(value)} = {expression}")

    def define_inline(self, value: SSAValue, expression: Expression) -> None:
        """Let a value be written as this expression wherever it is used."""
        self._inline[value] = expression

    def word(self, hint: str, text: str) -> str:
        """The name of a word that `text` makes, on targets whose words have parameters."""
        raise CompileError(f"{text} is no word of {self.target}")

    def index(self, text: str) -> str:
        """A number that a word gives as an index; targets whose indices are wider say how."""
        return text

    # --- ops

    def ops(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        """Write one op: as a statement where there is a method of its name, else by its rule."""
        statement = getattr(self, op.name.replace(".", "_"), None)
        if statement is not None:
            statement(op)
        elif isinstance(op, Instruction):
            write_instruction(self, op)
        elif op.name in self.rules:
            self._write_expression(op)
        else:
            raise CompileError(f"{name_of(op)}: {op.name} has no text in {type(self).__name__}")

    def _write_expression(self, op: Operation) -> None:
        result = op.results[0]
        expression = self.rules[op.name](op, [self.expression(operand) for operand in op.operands])
        if self.is_inlined(op, expression):
            self.define_inline(result, expression)
        elif result.first_use is not None:
            self.define(result, expression.text)

    def is_inlined(self, op: Operation, expression: Expression) -> bool:
        result = op.results[0]
        if op.name == "arith.constant" or not op.operands:
            return True
        if result.name_hint is not None or len(expression.text) > _MAX_INLINE_LENGTH:
            return False
        uses = list(result.uses)
        if len(uses) != 1 or uses[0].operation.parent is not op.parent:
            return False
        reader = uses[0].operation
        return not reader.regions or isinstance(reader, scf.ForOp | scf.IfOp | MapFragmentOp)

    # --- addresses

    def address(self, indices: Sequence[SSAValue], strides: Sequence[SSAValue | int]) -> Expression:
        """`i * stride + j`: the element that a load or a store names."""
        terms: list[Expression] = []
        known = 0
        for index, stride in zip(indices, strides, strict=True):
            at, step = literal(index), stride if isinstance(stride, int) else literal(stride)
            if at is not None and step is not None:
                known += at * step
            elif step == 1 and self.expression(index).text != "0":
                terms.append(self.expression(index))
            elif at == 1 and not isinstance(stride, int):
                terms.append(self.expression(stride))
            elif 0 not in (at, step) and self.expression(index).text != "0":
                by = Expression(str(stride)) if isinstance(stride, int) else self.expression(stride)
                product = f"{self.expression(index).within(PRODUCT)} * {by.within(PRODUCT + 1)}"
                terms.append(Expression(product, PRODUCT))
        if known or not terms:
            terms.append(Expression(str(known)))
        return terms[0] if len(terms) == 1 else Expression(" + ".join(term.within(SUM) for term in terms), SUM)

    def kernel_load(self, op: LoadOp) -> None:
        self.define(op.result, f"{self.text(op.buffer)}[{self.address(op.indices, stride_values(op)).text}]")

    def kernel_store(self, op: StoreOp) -> None:
        self.line(f"{self.text(op.buffer)}[{self.address(op.indices, stride_values(op)).text}] = {self.text(op.value)}")

    # --- control flow

    def scf_for(self, op: scf.ForOp) -> None:
        """Carried values are variables: they are set before the loop, at the end of its body, and are its results."""
        index, *carried = op.body.block.args
        self._carry(op.iter_args, carried, op.results)
        bounds = self.texts([op.lb, op.ub, op.step])
        bounds = bounds[:2] if bounds[2] == "1" else bounds
        bounds = bounds[1:] if len(bounds) == 2 and bounds[0] == "0" else bounds
        with self.block_of(f"for {self.names.define(index)} in range({', '.join(bounds)}):"):
            self._body(op.body.block, carried)

    def scf_while(self, op: scf.WhileOp) -> None:
        """The condition's region comes first in every iteration; what it forwards is what the body and the readers see.
        """
        before, after = op.before_region.block, op.after_region.block
        self._carry(op.arguments, before.args, ())
        with self.block_of("while True:"):
            *ops, condition = before.ops
            assert isinstance(condition, scf.ConditionOp)
            self.ops(ops)
            for argument, result in zip(after.args, op.results, strict=True):
                self.names.share(result, self.names.define(argument))
            self._assign(after.args, condition.operands[1:])
            with self.block_of(f"if not {self.text(condition.condition, SUM)}:"):
                self.line("break")
            self._body(after, before.args)

    def scf_if(self, op: scf.IfOp) -> None:
        for result in op.results:
            self.names.define(result)
        with self.block_of(f"if {self.text(op.cond)}:"):
            self._body(op.true_region.block, op.results)
        if op.false_region.blocks and (op.results or len(list(op.false_region.block.ops)) > 1):
            with self.block_of("else:"):
                self._body(op.false_region.block, op.results)

    def _carry(self, initial: Sequence[SSAValue], arguments: Sequence[SSAValue], results: Sequence[SSAValue]) -> None:
        """Variables for the values that go round a loop, set to what they start with."""
        starts = [self.text_for(start, argument) for start, argument in zip(initial, arguments, strict=True)]
        for number, argument in enumerate(arguments):
            if argument.name_hint is None and number < len(results):
                argument.name_hint = results[number].name_hint
            if self._is_dying_variable(initial[number], starts[number], argument):
                self.names.share(argument, starts[number])
            name = self.names.define(argument)
            if number < len(results):
                self.names.share(results[number], name)
        self._assign_texts(arguments, starts)

    def _is_dying_variable(self, value: SSAValue, text: str, argument: SSAValue) -> bool:
        """Whether a loop may reuse the variable of its initial value, which nothing else reads."""
        block = argument.owner
        loop = block.parent_op() if isinstance(block, Block) else None
        if loop is None or self.names.find(value) != text or not value.has_one_use():
            return False
        if isinstance(value, BlockArgument):
            carried = isinstance(value.owner.parent_op(), scf.ForOp) and value.index > 0
            return carried and value.owner is loop.parent
        return isinstance(value.owner, Operation) and value.owner.parent is loop.parent

    def _body(self, block: Block, targets: Sequence[SSAValue]) -> None:
        """The ops of a block; what it ends with is assigned to `targets`."""
        *ops, terminator = block.ops
        self.ops(ops)
        self._assign(targets, terminator.operands)

    def _assign(self, targets: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        """One simultaneous assignment of all that changes."""
        pairs = zip(values, targets, strict=True)
        self._assign_texts(targets, [self.text_for(value, target) for value, target in pairs])

    def _assign_texts(self, targets: Sequence[SSAValue], values: Sequence[str]) -> None:
        changes = [
            (target, value) for target, value in zip(self.texts(targets), values, strict=True) if target != value
        ]
        if changes:
            self.line(f"{', '.join(target for target, _ in changes)} = {', '.join(value for _, value in changes)}")
