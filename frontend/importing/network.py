"""The network while it is being read: values made where they are needed, ops computed where all is known."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, LocationAttr, UnknownLoc
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.test_value import create_ssa_value

from mlirt.dialects.locations import names
from mlirt.dialects.pass_plugins import active
from mlirt.dialects.property_values import properties_of
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_names import hint_of_name
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import (
    Tensor,
    dims,
    dtype_name,
    element_name,
    element_of,
    element_type,
    is_tensor,
    rank,
    stored_bytes,
    tensor,
)
from mlirt.dialects.trt import Trt
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.weights import WeightStore
from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.frontend.importing.narrow_type import NarrowType
from mlirt.frontend.importing.number_arrays import Array, Numbers, as_numbers
from mlirt.frontend.importing.refusals import ValueNeededError

# Results that are larger than this, and larger than twice what they are made of, are left to the engine.
MAX_GROWTH_BYTES = 1 << 20
MAX_ELEMENT_COUNT = 1 << 40
MAX_FORMULA_LENGTH = 2000

# Folding these would hide from later passes what precision the trained network asks for.
_NEVER_FOLDED = frozenset({"trt.quantize", "trt.dequantize", "trt.dequantize_blocks", "trt.plugin"})

_OPS = {op.name: op for op in Trt.operations}


@dataclass(eq=False)
class Value:
    """A tensor of the network: an SSA value, an array, or either of them, made when it is first read.

    `numbers` are the elements as dimensions, where the tensor is small and they follow from the shapes of the inputs.
    `narrow` is what the elements stand for where the model gives them a type that is stored in a wider one.
    """

    type: Tensor
    ssa: SSAValue | None = None
    load: Callable[[], Array] | None = None
    make: Callable[[], SSAValue] | None = None
    numbers: Numbers | None = None
    hint: str = ""
    narrow: NarrowType | None = None
    _array: Array | None = field(default=None, repr=False)

    @property
    def dims(self) -> tuple[Dim, ...]:
        return dims(self.type)

    @property
    def rank(self) -> int:
        return rank(self.type)

    @property
    def element(self) -> Attribute:
        return element_of(self.type)

    @property
    def element_name(self) -> str:
        return element_name(self.element)

    @property
    def is_constant(self) -> bool:
        return self._array is not None or self.load is not None

    @property
    def array(self) -> Array | None:
        """The elements, where they are known now."""
        if self._array is None and self.load is not None:
            self._array = self.load()
        return self._array

    @property
    def dim_values(self) -> Numbers | None:
        """The elements as dimensions, where they are known or follow from the shapes of the inputs."""
        if self.numbers is None and self.is_constant:
            self.numbers = as_numbers(self.array)
        return self.numbers


Operands: TypeAlias = "Sequence[Value | Sequence[Value] | None]"


class Network:
    """Appends ops to a block; handlers of nodes speak to it through `layers.py`."""

    def __init__(
        self, store: WeightStore, assumed: Mapping[str, bool] | None = None, *, keeps_weights: bool = False
    ) -> None:
        """With `keeps_weights` handlers leave weights as the model has them where passes can work with them as well."""
        self.keeps_weights = keeps_weights
        self.keeps_layers = False
        """Whether layers that do nothing are layers all the same, with the names of their tensors."""
        self._folds = True
        self.root = self.block = Block()
        self.store = store
        self.input_names: list[str] = []
        self.late_sizes: dict[str, SSAValue] = {}
        self.squeezed: list[tuple[str, Value, UnsupportedError]] = []
        self.nodes_read = 0
        self.location: LocationAttr = UnknownLoc()
        self.assumed = assumed or {}
        self.mismatches = 0
        self.fresh_names: list[str] = []
        self.moving_names: set[str] = set()
        self._inferred: dict[Hashable, list[Tensor]] = {}

    @contextmanager
    def at(self, location: LocationAttr):
        """Give the ops made inside this location."""
        before, self.location = self.location, location
        try:
            yield
        finally:
            self.location = before

    @contextmanager
    def unfolded(self):
        """Append ops meanwhile whose results could be computed now."""
        before, self._folds = self._folds, False
        try:
            yield
        finally:
            self._folds = before

    @contextmanager
    def inside(self, block: Block):
        """Append to another block meanwhile: the region of a branch or a loop."""
        before, self.block = self.block, block
        try:
            yield
        finally:
            self.block = before

    def constant(self, array: Array, hint: str = "") -> Value:
        """A value whose elements are known."""
        type_ = tensor(element_type(dtype_name(array.dtype)), [int(size) for size in array.shape])
        return Value(type_, hint=hint, _array=array)

    def emit(self, op: str, operands: Operands, **properties: object) -> Value:
        """Append `trt.<op>` with one result, or compute it now where all its operands are known.

        A name with a dot is that of a plugin's layer in another dialect.
        """
        return self.emit_many(op, operands, 1, **properties)[0]

    def emit_as(self, type_: Tensor, op: str, operands: Operands, **properties: object) -> Value:
        """Append an op whose operands and properties do not determine its result type."""
        return self._emit(op, operands, [type_], properties)[0]

    def emit_many(self, op: str, operands: Operands, results: int, **properties: object) -> list[Value]:
        """Append `trt.<op>` with several results; lists among the operands are variadic ones."""
        return self._emit(op, operands, results, properties)

    def _emit(
        self, op: str, operands: Operands, results: int | list[Tensor], properties: dict[str, object]
    ) -> list[Value]:
        op_class = _op_class(op if "." in op else f"trt.{op}")
        attributes = properties_of(op_class, properties)
        flat = [value for group in operands for value in _flattened(group)]
        types = self._types(op_class, operands, results, attributes)
        folded = self._folded(op_class, operands, attributes, types) if self._may_fold(op_class, flat, types) else None
        if folded is not None:
            hint = flat[0].hint if _keeps_order(op_class, attributes) else ""
            return [self.constant(array, hint) for array in folded]
        made = op_class.build(
            operands=[_substituted(group, self.ssa) for group in operands],
            properties=attributes,
            result_types=op_class.grouped(types),
        )
        made.location = self.location
        self.append(made)
        return [Value(type_, ssa) for type_, ssa in zip(types, made.results, strict=True)]

    def deferred(self, type_: Tensor, make: Callable[[], SSAValue], numbers: Numbers) -> Value:
        """A value whose elements are known as dimensions; `make` gives the tensor, should somebody read it as data."""
        location, block = self.location, self.block

        def make_there() -> SSAValue:
            with self.at(location), self.inside(block):
                return make()

        return Value(type_, make=make_there, numbers=numbers)

    def append(self, op: Operation) -> None:
        Builder(InsertPoint.at_end(self.block)).insert(op)

    def append_at(self, op: Operation) -> None:
        """Append an op that bears the name of the node that is being read."""
        op.location = self.location
        self.append(op)

    def ssa(self, value: Value) -> SSAValue:
        """The SSA value, made now where it was not needed before."""
        if value.ssa is None:
            if value.make is not None and not value.is_constant:
                value.ssa = value.make()
            else:
                value.ssa = self._materialised(value)
            if value.hint and value.ssa.name_hint is None:
                value.ssa.name_hint = hint_of_name(value.hint)
        return value.ssa

    def fresh_name(self, prefix: str) -> str:
        """A name for a size that only a run can tell."""
        self.fresh_names.append(f"{prefix}{len(self.fresh_names) + 1}")
        return self.fresh_names[-1]

    def moving_name(self, prefix: str) -> str:
        """A name for a number that changes while the network runs."""
        name = self.fresh_name(prefix)
        self.moving_names.add(name)
        return name

    def moves(self, dim: Dim) -> bool:
        """Whether a dimension depends on a number that changes while the network runs."""
        return bool(symbols(dim) & self.moving_names)

    def needed(self, value: Value, what: str) -> ValueNeededError:
        """The refusal of a node whose `what` is not known before the run."""
        sources = [self.input_names[index] for index in sorted(_sources(self.ssa(value), self.root, self.late_sizes))]
        come = (
            f"it comes from the graph input {', '.join(map(repr, sources))}" if sources else "it is computed from data"
        )
        way = "give its value by constants= (an array by input), or " if sources else ""
        return ValueNeededError(
            f"{what} must be known when the engine is built, but {come}; {way}make it a constant of the model "
            "(it must be an initializer!)",
            tuple(sources),
        )

    def _types(
        self,
        op_class: type[TensorOp],
        operands: Operands,
        results: int | list[Tensor],
        attributes: Mapping[str, Attribute],
    ) -> list[Tensor]:
        """The result types, which follow from the types of the operands alone: asked for once for equal ones."""
        given = tuple([_substituted(group, _type_of) for group in operands])
        wanted = results if isinstance(results, int) else tuple(results)
        key = op_class, given, tuple(attributes.items()), wanted
        types = self._inferred.get(key)
        if types is None:
            types = [_sensible(result.type) for result in _probe(op_class, operands, results, attributes).results]
            if op_class.name != "trt.plugin":  # those have types by what somebody else has written
                self._inferred[key] = types
        return types

    def _may_fold(self, op_class: type[TensorOp], operands: Sequence[Value], types: Sequence[Tensor]) -> bool:
        may_fold = self._folds and op_class.name not in _NEVER_FOLDED
        if not may_fold or not operands or not all([value.is_constant for value in operands]):
            return False
        if any(not isinstance(dim, int) for type_ in types for dim in dims(type_)):
            return False
        most = max(MAX_GROWTH_BYTES, 2 * sum(_bytes(value.type) for value in operands))
        return sum(_bytes(type_) for type_ in types) <= most

    def _folded(
        self,
        op_class: type[TensorOp],
        operands: Operands,
        attributes: Mapping[str, Attribute],
        types: list[Tensor],
    ) -> Sequence[Array]:
        op = _built(op_class, operands, types, attributes)
        arrays = [array for group in operands for value in _flattened(group) if (array := value.array) is not None]
        with np.errstate(all="ignore"):
            return [np.asarray(result) for result in op.reference(*arrays)]

    def _materialised(self, value: Value) -> SSAValue:
        array = value.array
        assert array is not None
        hint = value.hint or " + ".join(names(self.location))
        if array.size > 1 and not any(array.strides):
            op = _splat(array, value.type)
            op.location = self.location
        else:
            op = ConstantOp.from_array(array, self.store, hint or "constant", self.location)
        with self.inside(self.root):  # branches and loops, which stand behind it, may share it
            self.append(op)
        return op.output


def _probe(
    op_class: type[TensorOp], operands: Operands, results: int | list[Tensor], attributes: Mapping[str, Attribute]
) -> TensorOp:
    """The op on stand-ins for its operands, which have nothing but their types; it is checked."""
    if isinstance(results, int):
        return op_class.build_inferred(_stand_ins(operands), attributes, results=results)
    probe = _built(op_class, operands, results, attributes)
    probe.verify_()
    return probe


def _built(
    op_class: type[TensorOp], operands: Operands, types: list[Tensor], attributes: Mapping[str, Attribute]
) -> TensorOp:
    grouped = op_class.grouped(types)
    return op_class.build(operands=_stand_ins(operands), properties=attributes, result_types=grouped)


def _stand_ins(operands: Operands) -> list[Any]:
    return [_substituted(group, lambda value: create_ssa_value(value.type)) for group in operands]


def _keeps_order(op_class: type[TensorOp], attributes: Mapping[str, Attribute]) -> bool:
    """Whether a result has the elements of the operand one by one, so that it may be called as that is."""
    return op_class is ShuffleOp and attributes.keys().isdisjoint(("first_transpose", "second_transpose"))


def _op_class(name: str) -> type[TensorOp]:
    """The class of a layer, ours or one of the plugins that count now."""
    brought = {op.name: op for plugin in active() for op in plugin.classes(TensorOp)}
    found = brought.get(name) or _OPS.get(name)
    if found is None or not issubclass(found, TensorOp):
        raise ValueError(f"there is no layer {name!r}")
    return found


def _type_of(value: Value) -> Tensor:
    return value.type


def _flattened(group: Value | Sequence[Value] | None) -> list[Value]:
    if group is None:
        return []
    return [group] if isinstance(group, Value) else list(group)


def _substituted(group: Value | Sequence[Value] | None, by: Callable[[Value], object]) -> Any:
    if group is None or isinstance(group, Value):
        return None if group is None else by(group)
    return tuple([by(value) for value in group])


def _sensible(type_: Attribute) -> Tensor:
    """A result type; raises for lengths that are negative, or that no memory holds."""
    sizes = [dim for dim in dims(type_) if isinstance(dim, int)]
    count = 1
    for size in sizes:
        count *= size
    absurd = any(len(str(dim)) > MAX_FORMULA_LENGTH for dim in dims(type_))
    if any(size < 0 for size in sizes) or count > MAX_ELEMENT_COUNT or absurd:
        raise InvalidModelError(f"the result would have the shape {[str(dim)[:80] for dim in dims(type_)]}")
    return tensor(element_of(type_), dims(type_))


def _bytes(type_: Tensor) -> int:
    size = stored_bytes(type_)
    return size if isinstance(size, int) else MAX_ELEMENT_COUNT


def _splat(array: Array, type_: Tensor) -> ConstantOp:
    any_type: Any = type_  # the attribute's own type parameter lists fewer element types than it holds
    value = DenseIntOrFPElementsAttr(any_type, BytesAttr(array.reshape(-1)[:1].tobytes()))
    return ConstantOp.build(properties={"value": value}, result_types=[type_])


def _sources(value: SSAValue, root: Block, late_sizes: Mapping[str, SSAValue]) -> set[int]:
    """The block arguments that a value is computed from; a size that only the run tells is computed from its word."""
    seen: set[SSAValue] = set()
    found: set[int] = set()
    todo = [value]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        names = {name for length in _lengths(current.type) for name in symbols(length)}
        todo.extend(late_sizes[name] for name in names & late_sizes.keys())
        if isinstance(current, BlockArgument):
            around = current.block.parent_op()
            if current.block.parent is None or around is None:
                found.update([current.index] if current.block is root else [])
            else:
                todo.extend(around.operands)
        elif isinstance(current.owner, Operation):
            todo.extend(value for inner in current.owner.walk() for value in inner.operands)
    return found


def _lengths(of: Attribute) -> tuple[Dim, ...]:
    return dims(of) if is_tensor(of) else ()
