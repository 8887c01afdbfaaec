"""The source of a CPU kernel to LLVM IR in one walk over its syntax tree, with numba's types, operators and intrinsics.

numba infers the types of a function from its bytecode: it turns that into a graph, into static single assignments and
into equations between types, which takes two thirds of a kernel's compilation. Generated source needs none of this: a
variable has the type of the assignment before. What a call or an operator means is still asked of numba, once for each
combination of types, so that both ways mean the same. Source beyond these rules is `Unsupported`, and numba itself
takes it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeAlias

from mlirt.builder.numba_cpu_names import single_names

operator: Any = import_module("operator")
_BINARY: Mapping[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: Mapping[type[ast.unaryop], Any] = {
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_COMPARED: Mapping[type[ast.cmpop], Any] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Unsupported(Exception):
    """The source is not of the kind that is translated here."""


@dataclass(frozen=True)
class Typed:
    """A value of LLVM with its type of numba."""

    type: Any
    llvm: Any


# The type of each variable at a place of the source; None where that depends on the way there.
_Types: TypeAlias = "dict[str, Any]"


@dataclass
class _Loop:
    """A loop around what is being translated: its exits, and what happens to variables that come from outside."""

    end: Any
    following: Any
    before: _Types
    branches: int
    read: set[str] = field(default_factory=set[str])
    assigned: set[str] = field(default_factory=set[str])
    exits: list[_Types] = field(default_factory=list[_Types])


@dataclass
class _Function:
    """A function whose body is being translated: its variables, each a place on the stack unless it is `single`."""

    single: frozenset[str] = frozenset()
    values: dict[str, Typed] = field(default_factory=dict[str, Typed])
    end: Any = None
    result: Typed | None = None
    types: _Types = field(default_factory=dict[str, Any])
    places: dict[tuple[str, Any], Typed] = field(default_factory=dict[tuple[str, Any], Typed])
    loops: list[_Loop] = field(default_factory=list[_Loop])
    branches: int = 0


def translated(source: str, name: str, namespace: Mapping[str, Any], context: Any, typing: Any, library: Any) -> Any:
    """The LLVM module (of llvmlite.ir) that defines `void name(int64 *params, int64 worker, int64 workers)`.

    `namespace` is what the source defines once it has run, `context` and `typing` are numba's contexts of the target,
    `library` is where numba puts functions that its own operators call. Raises `Unsupported`.
    """
    functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    return _Translator(functions, namespace, context, typing, library).module_of(name)


class _Translator:
    """One kernel with the functions that it calls, which are written into it."""

    def __init__(
        self,
        functions: Mapping[str, ast.FunctionDef],
        namespace: Mapping[str, Any],
        context: Any,
        typing: Any,
        library: Any,
    ) -> None:
        self.ir: Any = import_module("llvmlite.ir")
        self.types: Any = import_module("numba.core.types")
        self.functions, self.namespace = functions, namespace
        self.typing, self.library = typing, library
        self.context = context.subtarget()  # a copy, that calls back for functions of the source
        self.context.compile_internal = self._compile_internal
        self._numba_compiles = context.compile_internal
        self._intrinsic_type: Any = import_module("numba.core.extending")._Intrinsic
        self._single = {name: single_names(node) for name, node in functions.items()}
        self._known: dict[tuple[Any, ...], tuple[Any, Callable[..., Any]]] = {}
        self.builder: Any = None
        self.function = _Function()

    def module_of(self, name: str) -> Any:
        ir, types = self.ir, self.types
        module = self.context.create_module(name)
        word = ir.IntType(64)
        outer = ir.Function(module, ir.FunctionType(ir.VoidType(), [word.as_pointer(), word, word]), name)
        entry, first = outer.append_basic_block("variables"), outer.append_basic_block("body")
        self.builder = ir.IRBuilder(first)
        kinds = (types.CPointer(types.int64), types.int64, types.int64)
        self._run(name, [Typed(kind, llvm) for kind, llvm in zip(kinds, outer.args, strict=True)])
        self.builder.ret_void()
        self.builder.position_at_end(entry)
        self.builder.branch(first)
        if self.context.fastmath:
            import_module("numba.core.fastmathpass").rewrite_module(module, self.context.fastmath)
        return module

    # --- functions

    def _run(self, name: str, arguments: Sequence[Typed]) -> Typed | None:
        """Write a function of the source here; what it returns."""
        node = self.functions[name]
        if len(node.args.args) != len(arguments):
            raise Unsupported(f"{name} has other parameters")
        outer, self.function = self.function, _Function(self._single[name])
        self.function.end = self.builder.append_basic_block(f"{name}.end")
        for parameter, value in zip(node.args.args, arguments, strict=True):
            self._assign_name(parameter.arg, value)
        self._statements(node.body)
        if not self.builder.block.is_terminated:
            self.builder.branch(self.function.end)
        self.builder.position_at_end(self.function.end)
        place, self.function = self.function.result, outer
        return None if place is None else Typed(place.type, self.builder.load(place.llvm))

    def _compile_internal(self, builder: Any, body: Any, sig: Any, values: Sequence[Any], *more: Any) -> Any:
        """numba's way to call a Python function from inside of an intrinsic: one of the source is written there."""
        name = getattr(body, "__name__", "")
        if self.functions.get(name) is None or self.namespace.get(name) is None or builder is not self.builder:
            return self._numba_compiles(builder, body, sig, values, *more)
        made = self._run(name, [Typed(kind, value) for kind, value in zip(sig.args, values, strict=True)])
        if made is None or sig.return_type == self.types.void:
            return self.context.get_dummy_value()
        return self._cast(made, sig.return_type)

    # --- statements

    def _statements(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            if self.builder.block.is_terminated:
                return
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                old = self._name(name)
                self._assign_name(name, self._operation(_BINARY.get(type(op)), old, self._value(value)))
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                self._value(value)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds), orelse=[]):
                self._for(name, bounds, node.body)
            case ast.While(orelse=[]):
                self._while(node)
            case ast.If():
                self._if(node)
            case ast.Break() | ast.Continue():
                loop = self.function.loops[-1]
                loop.exits.append(dict(self.function.types))
                self.builder.branch(loop.end if isinstance(node, ast.Break) else loop.following)
            case ast.Return():
                self._return(node.value)
            case _:
                raise Unsupported(ast.unparse(node))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                for one, found in zip(targets, [self._value(each) for each in values], strict=True):
                    self._assign_value(one, found)
            case ast.Tuple(elts=targets), _:
                whole = self._value(value)
                for number, (one, kind) in enumerate(zip(targets, whole.type, strict=True)):
                    self._assign_value(one, Typed(kind, self.builder.extract_value(whole.llvm, number)))
            case _:
                self._assign_value(target, self._value(value))

    def _assign_value(self, target: ast.expr, value: Typed) -> None:
        match target:
            case ast.Name(id=name):
                self._assign_name(name, value)
            case ast.Subscript(value=memory, slice=index):
                place = self._value(memory), self._plain(self._value(index))
                self._operation(operator.setitem, *place, self._plain(value))
            case _:
                raise Unsupported(ast.unparse(target))

    def _assign_name(self, name: str, value: Typed) -> None:
        value, function = self._plain(value), self.function
        if name in function.single:
            function.values[name] = value
            return
        key = name, value.type
        if key not in function.places:
            function.places[key] = self._new_place(*key)
        function.types[name] = value.type
        if function.loops and function.loops[-1].branches == function.branches:
            function.loops[-1].assigned.add(name)
        self.builder.store(value.llvm, function.places[key].llvm)

    def _new_place(self, name: str, kind: Any) -> Typed:
        """A variable on the stack, at the start of the function, whose first value is nothing."""
        with self.builder.goto_entry_block():
            return Typed(kind, self.builder.alloca(self.context.get_value_type(kind), name=name))

    def _return(self, value: ast.expr | None) -> None:
        if value is not None:
            found = self._plain(self._value(value))
            if self.function.result is None:
                self.function.result = self._new_place("result", found.type)
            elif self.function.result.type != found.type:
                raise Unsupported("results of two types")
            self.builder.store(found.llvm, self.function.result.llvm)
        self.builder.branch(self.function.end)

    def _for(self, name: str, bounds: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        """Upward in known steps; changes of the variable inside of the body do not count, as in Python."""
        values = [self._index(bound) for bound in bounds]
        zero, one = (self.ir.Constant(self.ir.IntType(64), number) for number in (0, 1))
        start, stop, step = (zero, *values, one) if len(values) == 1 else (*values, one)[:3]
        if not isinstance(step, self.ir.Constant) or step.constant <= 0:
            raise Unsupported("a loop whose steps are not known to be upward")
        before = self.builder.block
        head, inside, following, after = self._blocks("for", "do", "next", "done")
        self.builder.branch(head)
        self.builder.position_at_end(head)
        counter = self.builder.phi(self.ir.IntType(64))
        counter.add_incoming(start, before)
        self.builder.cbranch(self.builder.icmp_signed("<", counter, stop), inside, after)
        self.builder.position_at_end(inside)
        self._loop(after, following, body, lambda: self._assign_name(name, Typed(self.types.int64, counter)))
        self.builder.position_at_end(following)
        counter.add_incoming(self.builder.add(counter, step, flags=("nsw",)), following)
        self.builder.branch(head)
        self.builder.position_at_end(after)

    def _while(self, node: ast.While) -> None:
        head, inside, after = self._blocks("while", "do", "done")
        self.builder.branch(head)
        self.builder.position_at_end(head)

        def enter() -> None:
            if isinstance(node.test, ast.Constant) and node.test.value is True:
                self.builder.branch(inside)
            else:
                self.builder.cbranch(self._condition(node.test), inside, after)
            self.builder.position_at_end(inside)

        self._loop(after, head, node.body, enter)
        self.builder.position_at_end(after)

    def _if(self, node: ast.If) -> None:
        yes, no, after = self._blocks("if", "else", "endif")
        self.builder.cbranch(self._condition(node.test), yes, no)
        function, ends = self.function, list[_Types]()
        before = dict(function.types)
        function.branches += 1
        for block, statements in ((yes, node.body), (no, node.orelse)):
            self.builder.position_at_end(block)
            function.types = dict(before)
            self._statements(statements)
            if not self.builder.block.is_terminated:
                ends.append(function.types)
                self.builder.branch(after)
        function.branches -= 1
        function.types = _merged(ends)
        self.builder.position_at_end(after)
        if not ends:
            self.builder.unreachable()

    def _blocks(self, *names: str) -> list[Any]:
        return [self.builder.append_basic_block(name) for name in names]

    def _loop(self, end: Any, following: Any, body: Sequence[ast.stmt], enter: Callable[[], None]) -> None:
        """A loop: what `enter` writes at the start of each iteration, then the body.

        What an iteration reads of the one before has to have the type that it had before the loop.
        """
        function = self.function
        loop = _Loop(end, following, dict(function.types), function.branches)
        function.loops.append(loop)
        enter()
        self._statements(body)
        if not self.builder.block.is_terminated:
            loop.exits.append(function.types)
            self.builder.branch(following)
        function.loops.pop()
        function.types = _merged([loop.before, *loop.exits])
        for name in loop.read:
            if function.types[name] != loop.before[name]:
                raise Unsupported(f"{name} changes its type in a loop that reads it")

    # --- expressions

    def _value(self, node: ast.expr) -> Typed:
        match node:
            case ast.Constant(value=value):
                return self._constant(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return self._constant(-value)
            case ast.Name(id=name):
                return self._name(name)
            case ast.BinOp(left=left, op=op, right=right):
                return self._operation(_BINARY.get(type(op)), self._value(left), self._value(right))
            case ast.UnaryOp(op=op, operand=operand):
                return self._operation(_UNARY[type(op)], self._value(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._operation(_COMPARED.get(type(op)), self._value(left), self._value(right))
            case ast.BoolOp():
                return self._both_or_either(node)
            case ast.Tuple(elts=elements):
                return self._tuple([self._plain(self._value(element)) for element in elements])
            case ast.Subscript(value=memory, slice=index):
                return self._element(self._value(memory), index)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(name, arguments)
            case _:
                raise Unsupported(ast.unparse(node))

    def _constant(self, value: Any) -> Typed:
        types = self.types
        if isinstance(value, float):
            return Typed(types.float64, self.context.get_constant(types.float64, value))
        kind = types.literal(value)
        if isinstance(value, str):
            return Typed(kind, self.context.get_dummy_value())
        plain = types.unliteral(kind)
        return Typed(kind, self.context.get_constant(plain, value))

    def _name(self, name: str) -> Typed:
        function = self.function
        if name in function.values:
            return function.values[name]
        if name in function.types:
            kind = function.types[name]
            if kind is None:
                raise Unsupported(f"{name} is of one type or another")
            for loop in reversed(function.loops):
                if name in loop.assigned:
                    break
                if name in loop.before:
                    loop.read.add(name)
            return Typed(kind, self.builder.load(function.places[name, kind].llvm))
        value = self.namespace.get(name)
        if isinstance(value, float):
            return self._constant(value)
        if name in self.functions and value is not None:
            return Typed(self.typing.resolve_value_type(value), self.context.get_dummy_value())
        raise Unsupported(f"the name {name}")

    def _both_or_either(self, node: ast.BoolOp) -> Typed:
        """`and` and `or` of conditions: the others are evaluated where the first has not decided."""
        is_and = isinstance(node.op, ast.And)
        (after,) = self._blocks("decided")
        decided: list[tuple[Any, Any]] = []
        for number, operand in enumerate(node.values):
            flag = self._condition(operand)
            decided.append((flag, self.builder.block))
            if number + 1 == len(node.values):
                self.builder.branch(after)
                break
            (following,) = self._blocks("undecided")
            self.builder.cbranch(flag, *((following, after) if is_and else (after, following)))
            self.builder.position_at_end(following)
        self.builder.position_at_end(after)
        result = self.builder.phi(self.ir.IntType(1))
        for flag, block in decided:
            result.add_incoming(flag, block)
        return Typed(self.types.boolean, result)

    def _condition(self, node: ast.expr) -> Any:
        found = self._plain(self._value(node))
        if found.type != self.types.boolean:
            raise Unsupported(f"a condition of {found.type}")
        return found.llvm

    def _index(self, node: ast.expr) -> Any:
        found = self._plain(self._value(node))
        if found.type != self.types.int64:
            raise Unsupported(f"a bound of {found.type}")
        return found.llvm

    def _element(self, memory: Typed, index: ast.expr) -> Typed:
        if isinstance(memory.type, self.types.BaseTuple):
            if not isinstance(index, ast.Constant) or not isinstance(index.value, int):
                raise Unsupported("an element of a tuple that is not known")
            return Typed(memory.type[index.value], self.builder.extract_value(memory.llvm, index.value))
        return self._operation(operator.getitem, memory, self._plain(self._value(index)))

    def _tuple(self, elements: Sequence[Typed]) -> Typed:
        kind = self.types.Tuple.from_types(tuple(element.type for element in elements))
        return Typed(kind, self.context.make_tuple(self.builder, kind, [element.llvm for element in elements]))

    # --- what numba is asked for

    def _plain(self, value: Typed) -> Typed:
        """A value whose type does not say which one it is."""
        return Typed(self.types.unliteral(value.type), value.llvm)

    def _cast(self, value: Typed, kind: Any) -> Any:
        return value.llvm if value.type == kind else self.context.cast(self.builder, value.llvm, value.type, kind)

    def _call(self, name: str, nodes: Sequence[ast.expr]) -> Typed:
        arguments = [self._value(node) for node in nodes]
        if name in self.functions:
            made = self._run(name, [self._plain(argument) for argument in arguments])
            return made or Typed(self.types.none, self.context.get_dummy_value())
        word = self.namespace.get(name)
        if not isinstance(word, self._intrinsic_type):
            raise Unsupported(f"a call of {name}")
        sig, code = self._resolved((word, *(argument.type for argument in arguments)), self._intrinsic)
        return self._applied(sig, code, arguments)

    def _intrinsic(self, word: Any, *kinds: Any) -> tuple[Any, Callable[..., Any]]:
        """An intrinsic for these types, with or without what they know of values, in the order that it asks for."""
        plain = tuple(self.types.unliteral(kind) for kind in kinds)
        for given in (kinds, plain) if word._prefer_literal else (plain, kinds):
            found = word._defn(self.typing, *given)
            if found is not None:
                return found[0], self._code_of(*found)
        raise Unsupported(f"{word} of {kinds}")

    def _code_of(self, sig: Any, code: Callable[..., Any]) -> Callable[..., Any]:
        """What an intrinsic emits, called as the code of an operator is."""

        def emit(builder: Any, values: Sequence[Any]) -> Any:
            return code(self.context, builder, sig, values)

        return emit

    def _operation(self, function: Any, *operands: Typed) -> Typed:
        kinds = (self.types.unliteral(operand.type) for operand in operands)
        sig, code = self._resolved((function, *kinds), self._operator)
        return self._applied(sig, code, operands)

    def _operator(self, function: Any, *kinds: Any) -> tuple[Any, Callable[..., Any]]:
        if function is None:
            raise Unsupported("an operator")
        sig = self.typing.resolve_function_type(self.typing.resolve_value_type(function), kinds, {})
        if sig is None:
            raise Unsupported(f"{function} of {kinds}")
        return sig, self.context.get_function(function, sig)

    def _resolved(self, key: tuple[Any, ...], find: Callable[..., Any]) -> tuple[Any, Callable[..., Any]]:
        if key not in self._known:
            self._known[key] = find(*key)
        return self._known[key]

    def _applied(self, sig: Any, code: Callable[..., Any], arguments: Sequence[Typed]) -> Typed:
        values = [self._cast(argument, kind) for argument, kind in zip(arguments, sig.args, strict=True)]
        return Typed(sig.return_type, code(self.builder, values))


def _merged(ends: Sequence[_Types]) -> _Types:
    """The types where several ways meet; a variable that only some of them have was not assigned on the others."""
    merged: _Types = {}
    for types in ends:
        for name, kind in types.items():
            merged[name] = kind if merged.setdefault(name, kind) == kind else None
    return merged
