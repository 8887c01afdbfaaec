"""The IR of a network, made layer by layer as it is asked for, and unmade where a layer changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.locations import named
from mlirt.dialects.shape_arithmetic import ShapeArithmetic
from mlirt.dialects.symbol_values import solve
from mlirt.dialects.symbolic import Dim, substitute, sym, symbols
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_names import hint_of_name
from mlirt.dialects.tensor_types import element_count, element_of, element_type, is_tensor, rank, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.weights import WeightStore
from mlirt.errors import InvalidModelError, MlirtError, UnsupportedError
from mlirt.frontend.importing.dimension_names import identifier
from mlirt.frontend.network.emitter import LayerEmitter
from mlirt.frontend.network.imported_op import copied
from mlirt.frontend.network.record import LayerRecord
from mlirt.frontend.network.scaled_int8 import numbers_of_int8
from mlirt.frontend.network.tensor import ITensor
from mlirt.tensorrt.data_types import DataType, numpy_name
from mlirt.tensorrt.dims import MAX_DIMS

if TYPE_CHECKING:
    from xdsl.ir import Attribute


class InvalidLayerError(InvalidModelError):
    """A layer contradicts its inputs or its settings; `layer` is its name."""

    def __init__(self, text: str, layer: str) -> None:
        super().__init__(text)
        self.layer = layer


MAX_VOLUME = (1 << 31) - 1


class Emission:
    """A block with the ops of the layers that were asked for, each after those that it reads."""

    def __init__(
        self,
        inputs: Sequence[ITensor],
        store: WeightStore,
        shapes: Mapping[str, Sequence[int | str]] | None = None,
        bounds: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        """`bounds` are the least and the greatest value of symbols, where profiles say them."""
        self.store = store
        self.arithmetic = ShapeArithmetic()
        self.bounds = bounds or {}
        given = {one: _lengths(one, (shapes or {}).get(one.name)) for one in inputs}
        self.renamed = symbols_of_models(given)
        self.block = Block(arg_types=[_type(one, given[one], self.renamed) for one in inputs])
        self.values: dict[ITensor, SSAValue] = dict(zip(inputs, self.block.args, strict=True))
        for one, argument in zip(inputs, self.block.args, strict=True):
            argument.name_hint = hint_of_name(one.name)
            self.values[one] = self._as_layers_read(one, argument)
        self.fresh_names: list[str] = []
        self._made: dict[LayerRecord, list[Operation]] = {}

    def _as_layers_read(self, tensor: ITensor, argument: SSAValue) -> SSAValue:
        """An input as numbers, where it is bytes with a range, and in the type that the layers of a model take."""
        value, wanted = argument, tensor.model_dtype
        if tensor.range is not None and tensor.dtype is DataType.INT8 and wanted is not DataType.INT8:
            value = numbers_of_int8(value, max(map(abs, tensor.range)), self.store, self.block.add_op)
        if wanted is None or element_of(value.type) == element_type(numpy_name(wanted)):
            return value
        made = IdentityOp.cast(value, element_type(numpy_name(wanted)), named(tensor.name))
        self.block.add_op(made)
        return made.output

    def value_of(self, tensor: ITensor) -> SSAValue:
        """The value of a tensor, whose layer and all layers before it are made now if they were not."""
        if tensor not in self.values and tensor.producer is not None:
            self.require(tensor.producer)
        if tensor not in self.values:
            raise InvalidModelError(f"tensor {tensor.name!r} is no input of the network, and no layer of it makes it")
        return self.values[tensor]

    def require(self, record: LayerRecord) -> None:
        """Make a layer, after the layers that it reads."""
        todo, entered = [record], set[LayerRecord]()
        while todo:
            current = todo[-1]
            missing = [layer for layer in _producers(current) if layer not in self._made]
            if current in self._made or not missing:
                self._make(todo.pop())
                continue
            if current in entered:
                raise InvalidModelError(f"{current.name}: the layer depends on its own output")
            entered.add(current)
            todo.extend(missing)

    def forget(self, record: LayerRecord) -> None:
        """Unmake a layer and all that were made after it, among which are those that read it."""
        if record not in self._made:
            return
        for later in reversed(list(self._made)):
            for op in reversed(self._made.pop(later)):
                op.detach()
                op.erase(safe_erase=False)
            for output in later.outputs:
                self.values.pop(output, None)
            if later is record:
                return

    def _make(self, record: LayerRecord) -> None:
        if record in self._made:
            return
        for one in record.inputs:
            if one is not None and one.producer is None and one not in self.values:
                raise InvalidModelError(f"{record.name}: its input {one.name!r} is not part of the network")
        ir = LayerEmitter(self, record)
        try:
            results = _typed(record, ir, _emitted(record, ir))
        except (VerifyException, MlirtError, ValueError) as error:
            for op in reversed(ir.made):
                op.detach()
                op.erase(safe_erase=False)
            raise _named(record, error) from error
        if record.template is None:
            _check_ranks(record, results)
            _check_volumes(record, results)
        self._made[record] = ir.made
        for output, value in zip(record.outputs, results, strict=True):
            has_own_name = isinstance(value.owner, ConstantOp) and value.name_hint is not None
            if output.name != output.implied_name and not has_own_name:
                value.name_hint = hint_of_name(output.name)
            self.values[output] = value


def input_type(of: ITensor) -> Attribute:
    """The type of an input: each length that the run decides gets its name, or one from the input's name and axis."""
    return _type(of, _lengths(of), {})


def _type(of: ITensor, lengths: Sequence[Dim], replaced: Mapping[str, Dim]) -> Attribute:
    return tensor(element_type(numpy_name(of.dtype)), [substitute(length, replaced) for length in lengths])


def _lengths(of: ITensor, given: Sequence[int | str] | None = None) -> list[Dim]:
    assert of.given_shape is not None
    lengths: list[Dim] = []
    for axis, length in enumerate(of.given_shape if given is None else given):
        if isinstance(length, str):
            lengths.append(parse(length))
        elif axis in of.formulas and given is None:
            lengths.append(parse(of.formulas[axis]))
        elif length >= 0:
            lengths.append(length)
        else:
            lengths.append(sym(identifier(of.dimension_names.get(axis, f"{of.name}_{axis}"))))
    return lengths


def symbols_of_models(inputs: Mapping[ITensor, Sequence[Dim]]) -> dict[str, Dim]:
    """What symbols of imported layers stand for, where inputs of their model have got other lengths since.

    A length that is a number comes before one that has only got another name.
    """
    now: list[tuple[Dim, Dim]] = []
    for one, lengths in inputs.items():
        now += [(parse(text), lengths[axis]) for axis, text in one.model_formulas.items() if axis < len(lengths)]
    numbers: dict[str, int] = {}
    for before, length in now:
        if isinstance(length, int):
            solve(before, length, numbers)
    names = {str(before): length for before, length in now if before != length and str(before) in symbols(before)}
    return {**names, **numbers}


def _check_ranks(record: LayerRecord, results: Sequence[SSAValue]) -> None:
    """Raise where a tensor has more dimensions than TensorRT's have (tensorrt-features.md#1.48)."""
    for value in results:
        count = rank(value.type) if is_tensor(value.type) else 0
        if count > MAX_DIMS:
            raise InvalidModelError(f"{record.name}: a tensor of {count} dimensions; the most are {MAX_DIMS}")


def _check_volumes(record: LayerRecord, results: Sequence[SSAValue]) -> None:
    """Raise where a tensor has more elements than TensorRT counts (tensorrt-features.md#1.47)."""
    for value in results:
        count = element_count(value.type)
        if isinstance(count, int) and count > MAX_VOLUME:
            raise InvalidModelError(f"{record.name}: a tensor of {count} elements; the most are {MAX_VOLUME}")


def _emitted(record: LayerRecord, ir: LayerEmitter) -> Sequence[SSAValue]:
    return record.view().emit(ir) if record.template is None else copied(record, ir)


def _producers(record: LayerRecord) -> list[LayerRecord]:
    inputs = record.inputs[: record.layer_class.EARLY_INPUTS]
    return [one.producer for one in inputs if one is not None and one.producer is not None]


def _typed(record: LayerRecord, ir: LayerEmitter, results: Sequence[SSAValue]) -> list[SSAValue]:
    """The results in the types that are TensorRT's, or that the user wants."""
    layer = record.view()
    return [layer.in_output_type(ir, index, value) for index, value in enumerate(results)]


def _named(record: LayerRecord, error: Exception) -> MlirtError:
    """The error with the layer's name in front, as one that a user may meet."""
    text = " ".join(str(error).split())
    text = text if text.startswith(record.name) else f"{record.name}: {text}"
    return UnsupportedError(text) if isinstance(error, UnsupportedError) else InvalidLayerError(text, record.name)
