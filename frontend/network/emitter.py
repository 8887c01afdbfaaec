"""Makes the ops of one layer in the block of its network."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.builder import Builder
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from mlirt.dialects.known_shapes import with_known_shapes
from mlirt.dialects.locations import named
from mlirt.dialects.property_values import properties_of
from mlirt.dialects.shape_arithmetic import numbers
from mlirt.dialects.tensor_names import hint_of_name
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import (
    byte_width,
    element_count,
    element_of,
    element_type,
    is_float,
    is_tensor,
    numpy_dtype,
    rank,
)
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.known_values import known_value
from mlirt.frontend.network.record import LayerRecord
from mlirt.frontend.network.scaled_int8 import int8_of_numbers
from mlirt.tensorrt.data_types import DataType, numpy_name

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.tensor_types import Tensor
    from mlirt.frontend.importing.network import Network, Value
    from mlirt.frontend.network.emission import Emission

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

Operands: TypeAlias = "Sequence[SSAValue | Sequence[SSAValue] | None]"


class LayerEmitter:
    """Appends ops that carry the layer's name."""

    def __init__(self, emission: Emission, record: LayerRecord) -> None:
        self.emission = emission
        self.record = record
        self.location = named(record.name)
        self.made: list[Operation] = []

    def input(self, index: int) -> SSAValue:
        """The value of an input that the layer needs."""
        value = self.maybe_input(index)
        if value is None:
            raise InvalidModelError(f"{self.record.name}: input {index} is missing")
        return value

    def maybe_input(self, index: int) -> SSAValue | None:
        """The value of an input, if there is one; a shape that is known is a constant."""
        tensor = self.record.inputs[index] if index < len(self.record.inputs) else None
        if tensor is None:
            return None
        value = self.emission.values[tensor]
        if index not in self.record.layer_class.SHAPE_INPUTS or isinstance(value.owner, ConstantOp):
            return value
        known = self._followed(value)
        return value if known is None else self.constant(known)

    def maybe_scalar(self, index: int) -> SSAValue | None:
        """The value of an input that is one number, which may come as a tensor of one element."""
        value = self.maybe_input(index)
        if value is None or rank(value.type) == 0 or element_count(value.type) != 1:
            return value
        return self.value(ShuffleOp, value, None, reshape_dims=[], zero_is_placeholder=False)

    def inputs(self) -> list[SSAValue | None]:
        """All inputs that the layer may have, floating-point ones in one type."""
        count = max(self.record.layer_class.INPUTS, len(self.record.inputs))
        return self.in_one_float([self.maybe_input(index) for index in range(count)])

    def in_one_float(self, values: Sequence[SSAValue | None]) -> list[SSAValue | None]:
        """The values with those of half precision widened where others are float32: layers compute in one type."""
        floats = [element_of(value.type) for value in values if value is not None and is_float(element_of(value.type))]
        if len(set(floats)) < 2:
            return list(values)
        widest = max(floats, key=byte_width)
        return [
            self.cast(value, widest) if value is not None and is_float(element_of(value.type)) else value
            for value in values
        ]

    def op(
        self,
        op: type[TensorOp],
        operands: Operands,
        properties: Mapping[str, object] | None = None,
        results: int = 1,
    ) -> Sequence[SSAValue]:
        """Append an op; its results."""
        made = op.build_inferred(operands, properties_of(op, properties or {}), self.location, results)
        if (exact := with_known_shapes(made, self.emission.arithmetic)) is not None:
            made.erase()
            made = exact
        self.append(made)
        return list(made.results)

    def value(self, op: type[TensorOp], *operands: SSAValue | None, **properties: object) -> SSAValue:
        """Append an op with one result; that result."""
        return self.op(op, operands, properties)[0]

    def constant(self, array: Array, what: str = "") -> SSAValue:
        """A constant; `what` it is to the layer becomes part of the name of large ones."""
        hint = f"{self.record.name}.{what}" if what else self.record.name
        made = ConstantOp.from_array(array, self.emission.store, hint, self.location)
        self.append(made)
        return made.output

    def weights(self, array: Array, shape: Sequence[int], like: SSAValue, what: str) -> SSAValue:
        """Weights of the layer in a shape, floating-point ones in the element type of a value."""
        name = self.record.graph.name_of_weights(array) or what
        if any(size < 0 for size in shape) or array.size != _product(shape):
            raise InvalidModelError(
                f"{self.record.name}: {what} weights has count {array.size} but {_count_text(shape)} was expected"
            )
        element = element_of(like.type)
        if is_float(element):
            array = array.astype(numpy_dtype(element), copy=False)
        return self.named_constant(array.reshape(shape), name, named=name != what)

    def known_numbers(self, value: SSAValue) -> Array | None:
        """The elements of a constant, or of what little is computed with constants; None where the run decides."""
        if isinstance(value.owner, ConstantOp):
            return value.owner.array(self.emission.store)
        return self._followed(value)

    def _followed(self, value: SSAValue) -> Array | None:
        """What follows from constants and from lengths, also where other lengths are those of the run."""
        import numpy as np

        known = known_value(value, self.emission.store)
        if known is not None or not is_tensor(value.type) or is_float(element_of(value.type)):
            return known
        elements = self.emission.arithmetic.elements(value)
        found = None if elements is None else numbers(elements)
        if found is None:
            return None
        return np.array(found, numpy_dtype(element_of(value.type))).reshape([len(found)] * rank(value.type))

    def is_constant(self, value: SSAValue) -> bool:
        """Whether no input of the network has a part in a value."""
        todo, seen = [value], {value}
        while todo:
            op = todo.pop().owner
            if not isinstance(op, Operation) or op.regions:
                return False
            todo += [one for one in op.operands if one not in seen]
            seen.update(op.operands)
        return True

    def named_constant(self, array: Array, name: str, *, named: bool) -> SSAValue:
        """A constant that keeps its name, where the user gave it one."""
        made = self.constant(array, name)
        if named:
            made.name_hint = hint_of_name(name)
        return made

    def cast(self, value: SSAValue, to: Attribute | DataType) -> SSAValue:
        """The elements in another type; the value itself where it has that type."""
        element = self.element(to) if isinstance(to, DataType) else to
        if element_of(value.type) == element:
            return value
        made = IdentityOp.cast(value, element, self.location)
        self.append(made)
        return made.output

    def converted(self, value: SSAValue, to: DataType, range: tuple[float, float] | None) -> SSAValue:
        """The elements in another type; numbers become bytes by the tensor's range, where it has one."""
        if to is DataType.INT8 and is_float(element_of(value.type)) and range is not None:
            return int8_of_numbers(value, max(map(abs, range)), self.emission.store, self.append)
        if to is DataType.INT8 and is_float(element_of(value.type)):
            raise InvalidModelError(f"{self.record.name}: numbers become INT8 by the tensor's dynamic range; set one")
        return self.cast(value, to)

    def element(self, dtype: DataType) -> Attribute:
        """The element type of a data type."""
        return element_type(numpy_name(dtype))

    def onnx(self, op_type: str, inputs: Sequence[SSAValue | None], attributes: Mapping[str, int]) -> SSAValue:
        """Append what the ONNX importer makes of an op; its first result."""
        from mlirt.frontend.onnx.single_op import append_op

        arguments = (op_type, inputs, attributes, self.emission.fresh_names)
        with self._noting_ops():
            return append_op(self.emission.block, self.emission.store, self.location, *arguments)

    def by_importer(self, make: Callable[[Network, list[Value]], Sequence[Value]]) -> Sequence[SSAValue]:
        """Append what a function of the importers makes of the layer's inputs."""
        from mlirt.frontend.importing.network import Network, Value

        net = Network(self.emission.store)
        net.root = net.block = self.emission.block
        net.location, net.fresh_names = self.location, self.emission.fresh_names
        given = [self.input(index) for index in range(len(self.record.inputs))]
        with self._noting_ops():
            return [net.ssa(one) for one in make(net, [Value(cast("Tensor", one.type), one) for one in given])]

    @contextmanager
    def _noting_ops(self) -> Generator[None]:
        """The ops that are appended meanwhile are the layer's."""
        block = self.emission.block
        last = block.last_op
        yield
        new = block.first_op if last is None else last.next_op
        while new is not None:
            self.made.append(new)
            new = new.next_op

    def append(self, op: Operation) -> None:
        op.location = self.location
        Builder(InsertPoint.at_end(self.emission.block)).insert(op)
        self.made.append(op)


def _count_text(shape: Sequence[int]) -> str:
    """How many weights a shape takes, and why; the shape alone where a length of it is unknown."""
    return f"{list(shape)}" if any(size < 0 for size in shape) else f"{_product(shape)} ({list(shape)})"


def _product(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
