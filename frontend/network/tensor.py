"""ITensor: a tensor of a network, an input or the output of a layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mlirt.dialects.tensor_types import dims, element_name, element_of
from mlirt.errors import InvalidModelError, MlirtError
from mlirt.tensorrt.argument_types import expect
from mlirt.tensorrt.data_types import DataType, data_type
from mlirt.tensorrt.dims import MAX_DIMS, Dims, InvalidDims
from mlirt.tensorrt.fixed_attributes import FixedAttributes
from mlirt.tensorrt.run_enums import TensorFormat, TensorLocation

if TYPE_CHECKING:
    from mlirt.frontend.network.graph import NetworkGraph
    from mlirt.frontend.network.record import LayerRecord

ALL_FORMATS = (1 << len(TensorFormat)) - 1


class ITensor(FixedAttributes):
    """A tensor (tensorrt-features.md#2.7). Its shape and type follow from the layers before it, those of an input are
    given.

    `formulas` are the lengths of an imported input, by axis, that are expressions of names, and `model_formulas` what
    they were in the model, whose layers speak of the same names and read elements of `model_dtype`; a `squeezed` output
    comes to the caller without its dimensions of length 1; the op of an imported layer already has the `implied_name`.
    """

    def __init__(
        self, graph: NetworkGraph, name: str, producer: LayerRecord | None = None, shape: Iterable[int] | None = None
    ) -> None:
        self.graph = graph
        self.producer = producer
        self._name = name
        self.given_shape = None if shape is None else Dims(shape)
        self.given_dtype: DataType | None = None
        self.model_dtype: DataType | None = None
        self.dimension_names: dict[int, str] = {}
        self.formulas: dict[int, str] = {}
        self.model_formulas: dict[int, str] = {}
        self.squeezed = False
        self.implied_name = ""
        self.range: tuple[float, float] | None = None
        self._formats = ALL_FORMATS
        self._location = TensorLocation.DEVICE
        self._is_broadcast = False
        self.fix_attributes()

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self.graph.rename_tensor(self, name)
        self._name = name

    @property
    def shape(self) -> Dims:
        """The lengths, -1 where the run decides; invalid, with an error in the log, where layers contradict them."""
        if self.given_shape is not None:
            return self.given_shape
        try:
            lengths = dims(self.graph.type_of(self))[1 if self.graph.has_implicit_batch else 0 :]
            if len(lengths) > MAX_DIMS:  # a model may have more inside
                raise InvalidModelError(f"{self.name}: {len(lengths)} dimensions; Dims has at most {MAX_DIMS}")
        except MlirtError as error:
            self.graph.reporter.error("tensor.py::shape", error)
            return InvalidDims()
        return Dims(length if isinstance(length, int) else -1 for length in lengths)

    @shape.setter
    def shape(self, shape: Iterable[int]) -> None:
        if self.given_shape is None:
            raise TypeError(f"{self.name}: only the shape of a network's input can be set")
        self.given_shape = Dims(shape)
        self.formulas.clear()
        self.graph.start_again()

    @property
    def dtype(self) -> DataType:
        """The element type; set on an output of the network, its elements are converted to it."""
        if self.given_dtype is not None:
            return self.given_dtype
        try:
            return data_type(element_name(element_of(self.graph.type_of(self))))
        except MlirtError as error:
            self.graph.reporter.error("tensor.py::dtype", error)
            return DataType.FLOAT

    @dtype.setter
    def dtype(self, dtype: DataType) -> None:
        self.given_dtype = dtype
        self.graph.start_again()

    @property
    def is_network_input(self) -> bool:
        return self in self.graph.inputs

    @property
    def is_network_output(self) -> bool:
        return self in self.graph.outputs

    @property
    def is_shape_tensor(self) -> bool:
        """Whether shapes are computed with it: a layer reads it as the shape of something."""
        return self.graph.is_shape_tensor(self)

    @property
    def is_execution_tensor(self) -> bool:
        """Whether it is data: all but what is read as a shape alone."""
        return self.graph.is_execution_tensor(self)

    @property
    def dynamic_range(self) -> tuple[float, float] | None:
        """The smallest and the largest value of the elements, as far as int8 shall hold them
        (tensorrt-features.md#9.20).
        """
        return self.range

    @dynamic_range.setter
    def dynamic_range(self, limits: tuple[float, float]) -> None:
        if not self.set_dynamic_range(*limits):
            raise ValueError(f"{self.name}: {limits} is no range")

    def set_dynamic_range(self, min: float, max: float) -> bool:
        """The same as `dynamic_range`; False for limits that are no range."""
        if not min <= max or min == max == 0:
            return False
        self.range = (float(min), float(max))
        if self.producer is None:  # bytes of an input become numbers by it
            self.graph.start_again()
        return True

    def reset_dynamic_range(self) -> None:
        self.range = None
        if self.producer is None:
            self.graph.start_again()

    def set_dimension_name(self, index: int, name: str) -> None:
        """Name a dimension of an input; dimensions of one name have one length (tensorrt-features.md#12.19, 12.20)."""
        self.dimension_names[index] = name
        self.graph.start_again()

    def get_dimension_name(self, index: int) -> str | None:
        return self.dimension_names.get(index)

    @property
    def location(self) -> TensorLocation:
        """The memory of an input or output: what is read or delivered as a shape is on the host, all else is not."""
        return self._location

    @location.setter
    def location(self, location: TensorLocation) -> None:
        expect("location", location, TensorLocation)
        if location is TensorLocation.HOST and not self.is_shape_tensor:
            self.graph.reporter.warning(f"{self.name}: only shapes lie on the host; the engine tells where it has them")
        self._location = location

    @property
    def allowed_formats(self) -> int:
        """A bit for each format that an input or output may have; linear is chosen where it is one
        (tensorrt-features.md#5.1).
        """
        return self._formats

    @allowed_formats.setter
    def allowed_formats(self, formats: int) -> None:
        self._formats = int(formats)

    @property
    def broadcast_across_batch(self) -> bool:
        """Whether an input has one sample for the whole batch; False with an explicit batch
        (tensorrt-features.md#2.17).
        """
        return self._is_broadcast

    @broadcast_across_batch.setter
    def broadcast_across_batch(self, across: bool) -> None:
        if self.graph.has_implicit_batch:
            self._is_broadcast = bool(across)
            self.graph.start_again()
            return
        self.graph.reporter.warning(f"{self.name}: broadcast_across_batch means nothing with an explicit batch")
