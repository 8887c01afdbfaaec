"""Reads the statements of a kernel function into the ops of a kernel.

Names stand for values of Python or of the run. What a loop or a branch at run time assigns to a name that is read
later, it carries: an iteration argument and a result of `scf.for` and `scf.while`, a result of `scf.if`. All else that
a body assigns is forgotten behind it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region

from mlirt.errors import MlirtError
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language.carried import Carried, Joined
from mlirt.kernels.lib.language.errors import KernelLanguageError, place, refusal
from mlirt.kernels.lib.language.liveness import gives_on
from mlirt.kernels.lib.language.loops import Range, RegionLoop
from mlirt.kernels.lib.language.operators import decided, item, operate, set_item
from mlirt.kernels.lib.language.syntax import Code, compiled, prepared
from mlirt.kernels.lib.language.values import is_run_time

_INDEX = IndexType()
_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


class _Return(Exception):
    """Carries what `return` gives to the call."""


class Reader:
    """One call of a function. `names` are all that it sees, those that it assigns included."""

    def __init__(self, code: Code, scope: Mapping[str, Any], arguments: Mapping[str, Any], k: KernelBuilder) -> None:
        self.code, self.k, self._arguments = code, k, arguments
        self.names = {**scope}
        for name in code.own_names:
            self.names.pop(name, None)
        self.names.update(arguments)
        self._depth = 0  # of loops and branches at run time
        self._lost: dict[str, int] = {}  # names that only those have assigned, with their lines

    def run(self) -> Any:
        """Append the ops of the function; gives what it returns."""
        for name, value in self._arguments.items():
            if is_run_time(value):
                self.k.named(value, name)
        try:
            self._block(self.code.tree.body)
        except _Return as returned:
            return returned.args[0]
        return None

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            try:
                getattr(self, f"_{type(node).__name__}")(node)
            except KernelLanguageError as error:
                if error.reader is not self:  # it comes from a function that is called here
                    error.callers += [] if error.reader is None else [place(self.code.file, node.lineno)]
                    error.reader = self
                raise
            except (_Return, MlirtError):
                raise
            except Exception as error:
                said = refusal(self.code.file, node.lineno, f"{str(error) or type(error).__name__}{self._hint(error)}")
                said.reader = self
                raise said from error

    def _hint(self, error: Exception) -> str:
        line = self._lost.get(error.name or "") if isinstance(error, NameError) else None
        return "" if line is None else f": expected a value before the loop or branch of line {line}, which assigns it"

    def value(self, node: ast.expr) -> Any:
        """An expression, with the ops that it takes appended."""
        return eval(compiled(node, self.code.file), self.names)

    # --- assignments

    def _Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def _Pass(self, node: ast.Pass) -> None:
        """Nothing is to be done."""

    def _Assert(self, node: ast.Assert) -> None:
        holds = decided(self.value(node.test))
        if is_run_time(holds):
            raise TypeError("expected a condition that is known when the kernel is read")
        if not holds:
            raise TypeError("expected what is asserted" if node.msg is None else str(self.value(node.msg)))

    def _Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._bind(target, value)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._bind(node.target, self.value(node.value))

    def _AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        added, word = self.value(node.value), type(node.op).__name__
        if isinstance(target, ast.Name):
            if target.id not in self.names:
                raise NameError(f"name '{target.id}' is not defined", name=target.id)
            self.names[target.id] = operate(word, self.names[target.id], added)
        else:
            assert isinstance(target, ast.Subscript)
            base, index = self.value(target.value), self.value(target.slice)
            set_item(base, index, operate(word, item(base, index), added))

    def _bind(self, target: ast.expr, value: Any) -> None:
        """Let names stand for values; values of the run take their first name to the IR."""
        if isinstance(target, ast.Name):
            self._name(target.id, value)
        elif isinstance(target, ast.Subscript):
            set_item(self.value(target.value), self.value(target.slice), value)
        else:
            assert isinstance(target, ast.Tuple | ast.List)
            if is_run_time(value):
                raise TypeError(f"expected {len(target.elts)} values, not one of type {value.type}")
            self._bind_parts(target.elts, list(value))

    def _bind_parts(self, targets: Sequence[ast.expr], values: list[Any]) -> None:
        stars = [place for place, one in enumerate(targets) if isinstance(one, ast.Starred)]
        if stars:
            (place,), more = stars, len(values) - len(targets) + 1
            values = [*values[:place], values[place : place + more], *values[place + more :]]
        if len(targets) != len(values):
            raise TypeError(f"expected {len(targets)} values, not {len(values)}")
        for one, value in zip(targets, values, strict=True):
            self._bind(one.value if isinstance(one, ast.Starred) else one, value)

    def _name(self, name: str, value: Any) -> None:
        if is_run_time(value) and not isinstance(value.owner, arith.ConstantOp):
            is_new = name in self.code.own_names and not is_run_time(self.names.get(name))
            self.k.named(value, name, keep=is_new and self.k.keeps_names)
        self.names[name] = value

    # --- functions

    def _FunctionDef(self, node: ast.FunctionDef) -> None:
        code = getattr(node, "code", None) or prepared(node, self.code.file)
        setattr(node, "code", code)
        signature = _signature(node, self)

        def call(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return Reader(code, self.names, bound.arguments, self.k).run()

        self.names[node.name] = call

    def _Return(self, node: ast.Return) -> None:
        if self._depth:
            raise TypeError("expected `return` outside of loops and branches at run time")
        raise _Return(None if node.value is None else self.value(node.value))

    # --- loops and branches

    def _For(self, node: ast.For) -> None:
        """Over a range `scf.for`, over a region of the kernel dialect that op; other loops are unrolled."""
        values = self.value(node.iter)
        if isinstance(values, Range):
            self._counted(node, values)
        elif isinstance(values, RegionLoop):
            self._region(node, cast("RegionLoop[Any]", values).enter(), node.target, node.body)
        elif is_run_time(values):
            raise TypeError(f"expected range(..), parallel(..) or a list to go over, not a value of type {values.type}")
        else:
            for value in values:
                self._bind(node.target, value)
                self._block(node.body)

    def _counted(self, node: ast.For, values: Range) -> None:
        if not isinstance(node.target, ast.Name):
            raise TypeError("expected one name for what counts a range")
        start, stop, step = (self.k.index(bound) for bound in (values.start, values.stop, values.step))
        carried = self._carried(node)
        block = Block(arg_types=[_INDEX, *carried.types])
        block.args[0].name_hint = node.target.id
        with self._inside(block):
            self.names |= {node.target.id: block.args[0]} | carried.bound(block.args[1:])
            self._block(node.body)
            self.k.insert(scf.YieldOp(*carried.results(self.names)))
        self._end(node, carried, scf.ForOp(start, stop, step, carried.values, block))

    def _While(self, node: ast.While) -> None:
        carried = self._carried(node)
        before, after = (Block(arg_types=carried.types) for _ in range(2))
        with self._inside(before):
            self.names |= carried.bound(before.args)
            condition = decided(self.value(node.test))
            if isinstance(condition, bool):
                raise TypeError("expected a condition on values of the run: loops over lists are unrolled")
            self.k.insert(scf.ConditionOp(condition, *before.args))
        with self._inside(after):
            self.names |= carried.bound(after.args)
            self._block(node.body)
            self.k.insert(scf.YieldOp(*carried.results(self.names)))
        self._end(node, carried, scf.WhileOp(carried.values, carried.types, Region(before), Region(after)))

    def _If(self, node: ast.If) -> None:
        """Decided, or `scf.if`, whose results are the names that are read later."""
        condition = decided(self.value(node.test))
        if isinstance(condition, bool):
            self._block(node.body if condition else node.orelse)
            return
        blocks, sides = [Block(), Block()], list[dict[str, Any]]()
        for block, body in zip(blocks, (node.body, node.orelse), strict=True):
            with self._inside(block):
                self._block(body)
                sides.append({name: self.names[name] for name in gives_on(node) if name in self.names})
        joined = Joined(self.k, sides)
        for side, block in enumerate(blocks):
            with self.k.inside(block):
                self.k.insert(scf.YieldOp(*joined.ends(side)))
        has_else = bool(node.orelse or joined.types)
        then, otherwise = Region(blocks[0]), Region(blocks[1]) if has_else else None
        self._end(node, joined, scf.IfOp(condition, joined.types, then, otherwise))

    def _With(self, node: ast.With) -> None:
        first, *more = node.items
        body = [ast.copy_location(ast.With(more, node.body), node)] if more else node.body
        for inner in body if more else ():
            setattr(inner, "gives_on", gives_on(node))
        self._region(node, self.value(first.context_expr), first.optional_vars, body)

    def _region(
        self,
        node: ast.For | ast.With,
        region: AbstractContextManager[Any],
        target: ast.expr | None,
        body: Sequence[ast.stmt],
    ) -> None:
        """What a region assigns is of no use behind it: it gives on nothing."""
        before = dict(self.names)
        with region as given, self._scoped():
            if target is not None:
                self._bind(target, given)
            self._block(body)
            changed = [name for name in gives_on(node) if name in before and self.names[name] is not before[name]]
        if changed:
            raise TypeError(f"expected no change of '{changed[0]}', which is read behind the region")
        self._lost |= {name: node.lineno for name in gives_on(node) if name not in before}

    @contextmanager
    def _inside(self, block: Block) -> Generator[None]:
        with self.k.inside(block), self._scoped():
            yield

    @contextmanager
    def _scoped(self) -> Generator[None]:
        """Names that are assigned meanwhile are forgotten; functions inside see the same dictionary all the time."""
        before = dict(self.names)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.names.clear()
            self.names.update(before)

    def _carried(self, node: ast.For | ast.While) -> Carried:
        return Carried(self.k, {name: self.names[name] for name in gives_on(node) if name in self.names})

    def _end(self, node: ast.stmt, carried: Carried | Joined, op: Operation) -> None:
        """Append a loop or branch, whose results are the new values of what it carries."""
        self.names |= carried.bound(self.k.insert(op).results)
        self._lost |= {name: node.lineno for name in gives_on(node) if name not in self.names}


def _signature(node: ast.FunctionDef, reader: Reader) -> inspect.Signature:
    """The parameters of a function inside of a function, with what is given where they are left out."""
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [*[None] * (len(positional) - len(given.defaults)), *given.defaults]
    pairs = zip(positional, defaults, strict=True)
    parameters = [_parameter(one, default, _POSITIONAL, reader) for one, default in pairs]
    if given.vararg is not None:
        parameters.append(_parameter(given.vararg, None, inspect.Parameter.VAR_POSITIONAL, reader))
    keywords = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    parameters += [_parameter(one, default, inspect.Parameter.KEYWORD_ONLY, reader) for one, default in keywords]
    return inspect.Signature(parameters)


def _parameter(one: ast.arg, default: ast.expr | None, kind: Any, reader: Reader) -> inspect.Parameter:
    value = inspect.Parameter.empty if default is None else reader.value(default)
    return inspect.Parameter(one.arg, kind, default=value)
