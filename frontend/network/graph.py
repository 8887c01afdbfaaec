"""The layers and tensors of a network, and the IR that is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from xdsl.dialects.tensor import ExtractOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.tensor_types import element_of, is_float, is_tensor, number_as_tensor, rank
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.errors import InvalidInputError, MlirtError
from mlirt.frontend.network.emission import Emission
from mlirt.frontend.network.record import LayerRecord
from mlirt.frontend.network.tensor import ITensor
from mlirt.tensorrt.layer_enums import LayerType
from mlirt.tensorrt.reporting import Reporter

if TYPE_CHECKING:
    from xdsl.ir import Attribute

    from mlirt.frontend.network.implicit_batch import WithBatch
    from mlirt.frontend.network.layer import ILayer
    from mlirt.tensorrt.weights import Array

# Layers that make shapes of shapes (tensorrt-features.md#6.1).
SHAPE_ARITHMETIC = frozenset(
    {
        LayerType.ACTIVATION,
        LayerType.CONCATENATION,
        LayerType.CONDITIONAL_INPUT,
        LayerType.CONDITIONAL_OUTPUT,
        LayerType.ELEMENTWISE,
        LayerType.GATHER,
        LayerType.IDENTITY,
        LayerType.REDUCE,
        LayerType.SELECT,
        LayerType.SHUFFLE,
        LayerType.SLICE,
        LayerType.UNARY,
    }
)

Layer = TypeVar("Layer", bound="ILayer")


class NetworkGraph:
    """What the methods of `INetworkDefinition` work on."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.inputs: list[ITensor] = []
        self.outputs: list[ITensor] = []
        self.debug: list[ITensor] = []
        """What an engine beside computes."""
        self.shape_outputs: list[ITensor] = []
        """Outputs that are delivered as shapes, to the host's memory."""
        self.records: list[LayerRecord] = []
        self._named_weights: list[tuple[Array, str]] = []
        self.boundaries = 0
        self._emission: Emission | None = None
        self.max_batch_size: int | None = None
        """The largest batch of a plan, where the network was made without one (tensorrt-features.md#2.17)."""
        self.make_beside: Callable[[], WithBatch] | None = None
        """Makes the network with the batch, where this one has an implicit batch."""
        self._beside: WithBatch | None = None

    @property
    def has_implicit_batch(self) -> bool:
        """Whether tensors are those of one sample."""
        return self.make_beside is not None

    def add(
        self,
        layer_class: type[Layer],
        inputs: Sequence[ITensor | None],
        outputs: int = 1,
        settings: Mapping[str, object] | None = None,
        **fields: Any,
    ) -> Layer:
        """A new layer at the end, with TensorRT's name for one that has none; `settings` that are None are absent.

        None, with an error in the log, for settings that can never be right.
        """
        for place, tensor in enumerate(inputs):
            if not isinstance(tensor, ITensor) and (tensor is not None or place == 0):
                raise TypeError(f"{layer_class.__name__}: input {place}: expected an ITensor, got {tensor!r}")
        name = f"(Unnamed Layer* {len(self.records)}) [{layer_class.KIND}]"
        record = LayerRecord(self, layer_class, layer_class.TYPE, name, list(inputs), **fields)
        record.outputs = [ITensor(self, _output_name(name, k), record) for k in range(outputs)]
        layer = layer_class(record)
        try:
            for key, value in (settings or {}).items():
                if value is not None:
                    setattr(layer, key, value)
        except MlirtError as error:
            self.reporter.error("network.py::add", f"{name}: {error}")
            return cast("Layer", None)
        self.records.append(record)
        return layer

    def name_weights(self, array: Array, name: str) -> bool:
        """Give the memory of weights a name; False for one that is taken."""
        if any(name == taken for _, taken in self._named_weights):
            return False
        self._named_weights.append((array, name))
        return True

    def share_weights_names(self, other: NetworkGraph) -> None:
        """Know weights by the names that they have in another network."""
        self._named_weights = other._named_weights

    def name_of_weights(self, array: Array) -> str:
        """The name of weights that lie where named ones do; empty where there is none."""
        return next((name for other, name in self._named_weights if _is_same_memory(array, other)), "")

    def refused(self, where: str, text: str) -> Any:
        """Nothing, with an error in the log."""
        self.reporter.error(f"network.py::{where}", text)

    def type_of(self, tensor: ITensor) -> Attribute:
        """The type of a tensor; raises the error of the first layer before it that is wrong or not complete.

        A number that is no tensor in the IR, such as the condition of an imported If, is a tensor without dimensions.
        """
        if self.make_beside is not None:
            if self._beside is None:
                self._beside = self.make_beside()
            found = self._beside.tensor(tensor)
            return found.graph.type_of(found)
        if self._emission is None:
            ctx = RtContext()
            register_dialects(ctx)
            self._emission = Emission(self.inputs, ctx.weights)
        found = self._emission.value_of(tensor).type
        return found if is_tensor(found) else number_as_tensor(found)

    def forget(self, record: LayerRecord) -> None:
        """A layer has changed: so may all that depends on it."""
        if self._beside is not None and self._beside.has(record):
            self._beside = None
        if self._emission is not None:
            self._emission.forget(record)

    def start_again(self) -> None:
        """An input has changed."""
        self._beside = None
        self._emission = None

    def is_taken(self, name: str) -> bool:
        """Whether an input or output has a name."""
        return any(name == one.name for one in (*self.inputs, *self.outputs))

    def rename_tensor(self, tensor: ITensor, name: str) -> None:
        """Raise `InvalidInputError` where another input or output has the name."""
        if any(other.name == name and other is not tensor for other in (*self.inputs, *self.outputs)):
            raise InvalidInputError(f"there is an input or output {name!r} already")
        if tensor in self.inputs:
            self.start_again()

    def is_shape_tensor(self, tensor: ITensor) -> bool:
        """Whether a layer reads a tensor as a shape, or makes of it what is read as one (tensorrt-features.md#6.1,
        6.2). What a model's layer counts, such as the elements that are not zero or the iterations of a loop, is a size
        that follows from data.
        """
        todo, seen, counts = [tensor], {tensor}, self._trip_counts()
        while todo:
            current = todo.pop()
            if current in self.shape_outputs:
                return True
            for record in self.records:
                for index, one in enumerate(record.inputs):
                    if one is not current:
                        continue
                    if index in record.layer_class.SHAPE_INPUTS:
                        return True
                    if isinstance(record.template, DefineSizeOp) and current not in counts:
                        return True
                    if record.type is LayerType.REDUCE or current in counts:
                        counts.update(record.outputs)
                    if record.type in SHAPE_ARITHMETIC:
                        todo.extend(output for output in record.outputs if output not in seen and _is_small(output))
                        seen.update(record.outputs)
        return False

    def _trip_counts(self) -> set[ITensor]:
        """What bounds loops of a model, where a number is taken out of its tensor."""
        readers = [record for record in self.records if isinstance(record.template, ExtractOp)]
        return {one for record in readers for one in record.inputs if one is not None}

    def is_execution_tensor(self, tensor: ITensor) -> bool:
        """Whether a tensor is data: all are but those that are read as shapes alone (tensorrt-features.md#6.3)."""
        return not self.is_shape_tensor(tensor) or self._reaches_data(tensor)

    def _reaches_data(self, tensor: ITensor) -> bool:
        """Whether a tensor, or what shape arithmetic makes of it, is an output or read by a layer as data."""
        todo, seen = [tensor], {tensor}
        while todo:
            current = todo.pop()
            if current in self.outputs and current not in self.shape_outputs:
                return True
            for record in self.records:
                read = [index for index, one in enumerate(record.inputs) if one is current]
                if isinstance(record.template, DefineSizeOp):
                    continue
                if all(index in record.layer_class.SHAPE_INPUTS for index in read):
                    continue
                if record.type not in SHAPE_ARITHMETIC or not all(map(_is_small, record.outputs)):
                    return True
                todo.extend(output for output in record.outputs if output not in seen)
                seen.update(record.outputs)
        return False


def _is_same_memory(one: Array, other: Array) -> bool:
    return one is other or (one.nbytes == other.nbytes > 0 and one.ctypes.data == other.ctypes.data)


def _is_small(tensor: ITensor) -> bool:
    """Whether a tensor can be a shape: integers or booleans of at most one dimension, of a layer that is right."""
    try:
        type_ = tensor.graph.type_of(tensor)
    except MlirtError:  # said when the network is built
        return False
    return rank(type_) <= 1 and not is_float(element_of(type_))


def _output_name(layer: str, index: int) -> str:
    return f"{layer}_output" if index == 0 else f"{layer}_output_{index}"
