"""ILayer: what all layers of a network have, and how a layer becomes an op of the `trt` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.frontend.network.record import LayerRecord
from mlirt.frontend.network.settings import Setting
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.fixed_attributes import FixedAttributes
from mlirt.tensorrt.layer_enums import LayerType
from mlirt.tensorrt.reported_version import reports_at_least

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor


_OWN = frozenset({"TYPE", "record"})
"""Attributes that TensorRT's layers lack and that kinds of layers set."""


class ILayer(FixedAttributes):
    """A view of a layer (tensorrt-features.md#2.8); `layer.__class__ = mlirt.IConvolutionLayer` shows more of it (2.9).

    Subclasses whose op takes the layer's inputs and settings as they are just name it in `OP`.
    """

    OP: ClassVar[type[TensorOp] | None] = None
    KIND: ClassVar[str] = ""
    TYPE: ClassVar[LayerType]
    INPUTS: ClassVar[int] = 1
    # Results that TensorRT has as Int32, where the op gives int64.
    INT32_OUTPUTS: ClassVar[tuple[int, ...]] = ()
    # The inputs after these come from layers that may be made later: the back edge of a recurrence.
    EARLY_INPUTS: ClassVar[int | None] = None
    # Inputs that are shapes.
    SHAPE_INPUTS: ClassVar[tuple[int, ...]] = ()
    if reports_at_least(8, 6):
        metadata = Setting[str]("")

    def __init__(self, record: LayerRecord) -> None:
        self.record = record
        self.fix_attributes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ILayer) and self.record is other.record

    def __hash__(self) -> int:
        return id(self.record)

    def __dir__(self) -> list[str]:
        """What TensorRT's layers have: tools print all that a kind of layer has beside these."""
        return [name for name in super().__dir__() if name not in _OWN]

    def about_unknown(self, name: str) -> str:
        kind = self.record.layer_class
        if hasattr(kind, name) and not isinstance(self, kind):
            return f"{self.name}: an ILayer shows no {name!r}; set layer.__class__ = {kind.__name__} first"
        return f"{self.name}: {super().about_unknown(name)}"

    @property
    def name(self) -> str:
        return self.record.name

    @name.setter
    def name(self, name: str) -> None:
        self.record.name = name
        self.record.changed()

    @property
    def type(self) -> LayerType:
        return self.record.type

    @property
    def num_inputs(self) -> int:
        return len(self.record.inputs)

    @property
    def num_outputs(self) -> int:
        return len(self.record.outputs)

    def get_input(self, index: int) -> ITensor | None:
        """An input; None where there is none."""
        return self.record.inputs[index] if 0 <= index < len(self.record.inputs) else None

    def set_input(self, index: int, tensor: ITensor) -> None:
        """Give the layer another input, or one that it may have besides; raises `IndexError` for one it cannot have."""
        if not 0 <= index < max(self.INPUTS, len(self.record.inputs)):
            raise IndexError(f"{self.name}: there is no input {index} of {self.record.type}")
        missing = index + 1 - len(self.record.inputs)
        self.record.inputs.extend([None] * missing)
        self.record.inputs[index] = tensor
        self.record.changed()

    def get_output(self, index: int) -> ITensor:
        """An output; None where there is none."""
        return self.record.outputs[index] if 0 <= index < len(self.record.outputs) else cast("ITensor", None)

    @property
    def precision(self) -> DataType:
        """The type that the layer computes in; means nothing unless `precision_is_set` (tensorrt-features.md#4.3, 4.7).
        """
        return DataType.FLOAT if self.record.precision is None else self.record.precision

    @precision.setter
    def precision(self, precision: DataType) -> None:
        self.record.precision = DataType(precision)

    @property
    def precision_is_set(self) -> bool:
        return self.record.precision is not None

    def reset_precision(self) -> None:
        self.record.precision = None

    def set_output_type(self, index: int, dtype: DataType) -> None:
        """The type of an output: between FLOAT and HALF a preference, to or from other types a conversion."""
        self.record.output_types[index] = dtype
        self.record.changed()

    def get_output_type(self, index: int) -> DataType:
        return self.record.output_types.get(index, self.get_output(index).dtype)

    def output_type_is_set(self, index: int) -> bool:
        return index in self.record.output_types

    def reset_output_type(self, index: int) -> None:
        self.record.output_types.pop(index, None)
        self.record.changed()

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        """Make the layer's ops; returns the values of its outputs."""
        assert self.OP is not None
        return ir.op(self.OP, ir.inputs(), self.properties(), len(self.record.outputs))

    def in_output_type(self, ir: LayerEmitter, index: int, value: SSAValue) -> SSAValue:
        """A result in the type that TensorRT gives it, or that the user wants."""
        wanted = self.record.output_types.get(index)
        if index in self.INT32_OUTPUTS and self.record.template is None:
            value = ir.cast(value, DataType.INT32)
        if wanted is None or (is_float(element_of(value.type)) and wanted in (DataType.FLOAT, DataType.HALF)):
            return value
        return ir.converted(value, wanted, self.record.outputs[index].range)

    def properties(self) -> dict[str, object]:
        """The settings that are properties of the op."""
        found: dict[str, object] = {}
        for setting in settings_of(type(self)):
            value = self.record.settings.get(setting.name, setting.default)
            if setting.prop is not None and value is not None:
                found[setting.prop] = setting.to_property(value)
        return found


def settings_of(layer_class: type[ILayer]) -> list[Setting[Any]]:
    """The settings that a class of layers has."""
    found = {name: value for one in reversed(layer_class.__mro__) for name, value in vars(one).items()}
    return [value for value in found.values() if isinstance(value, Setting)]
