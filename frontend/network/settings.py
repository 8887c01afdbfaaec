"""Attributes of layers that their ops are made from: a value with a default, and the op's property that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.dims import MAX_DIMS, Dims, DimsHW, Permutation
from mlirt.tensorrt.enumeration import Enumeration
from mlirt.tensorrt.weights import as_weights

if TYPE_CHECKING:
    from xdsl.ir import Attribute

    from mlirt.frontend.network.layer import ILayer
    from mlirt.tensorrt.weights import Array, Weights

Value = TypeVar("Value")
Kind = TypeVar("Kind", bound=Enumeration)


class Setting(Generic[Value]):
    """A descriptor: changing it makes the layer's op anew. `prop` names the property of the op, if it is just that."""

    def __init__(self, default: Value, prop: str | None = None, check: Callable[[Value], object] | None = None) -> None:
        self.default = default
        self.prop = prop
        self.name = ""
        self._check = check

    def __set_name__(self, owner: type[ILayer], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, layer: None, owner: type[ILayer]) -> Setting[Value]: ...
    @overload
    def __get__(self, layer: ILayer, owner: type[ILayer]) -> Value: ...
    def __get__(self, layer: ILayer | None, owner: type[ILayer]) -> Value | Setting[Value]:
        if layer is None:
            return self
        record = layer.record
        if self.prop in record.foreign:
            raise UnsupportedError(
                f"{layer.name}: {self.name} has the value {record.foreign[self.prop]}, for which TensorRT has no name"
            )
        return record.settings[self.name] if self.name in record.settings else self.unset(layer)

    def unset(self, layer: ILayer) -> Value:
        """What a layer shows of a setting that it was not given."""
        return self.default

    def __set__(self, layer: ILayer, value: Value) -> None:
        accepted = self.accepted(value)
        if self._check is not None:
            self._check(accepted)
        layer.record.settings[self.name] = accepted
        layer.record.foreign.pop(self.prop or "", None)
        layer.record.edited.add(self.name)
        layer.record.changed()

    def accepted(self, value: Any) -> Value:
        """What is kept of a value that the user gives; raises `TypeError` or `ValueError` for one of another kind."""
        return value

    def to_property(self, value: Any) -> object:
        """A kept value as properties of ops are given."""
        return value

    def from_property(self, attribute: Attribute) -> Value:
        """The value that a property of an op stands for; raises `KeyError` where there is none."""
        data: Any = attribute
        return self.accepted(data.value.data)


class EnumSetting(Setting[Kind]):
    """A member of an enumeration; the property has the member's name in lower case."""

    def __init__(self, default: Kind, prop: str | None = None) -> None:
        super().__init__(default, prop)

    def accepted(self, value: Any) -> Kind:
        if not isinstance(value, type(self.default)):
            raise TypeError(f"{self.name}: expected a {type(self.default).__name__}, got {value!r}")
        return value

    def to_property(self, value: Any) -> object:
        return value.name.lower()

    def from_property(self, attribute: Attribute) -> Kind:
        data: Any = attribute
        return type(self.default)[data.data.name]


def _scalar(value: Any) -> Any:
    """The number that an array of one element is."""
    return value.item() if getattr(value, "size", 0) == 1 else value


class FloatSetting(Setting[float]):
    """A number."""

    def accepted(self, value: Any) -> float:
        return float(_scalar(value))


class IntSetting(Setting[int]):
    """A whole number."""

    def accepted(self, value: Any) -> int:
        return int(_scalar(value))


class BoolSetting(Setting[bool]):
    """Yes or no."""

    def accepted(self, value: Any) -> bool:
        return bool(value)

    def from_property(self, attribute: Attribute) -> bool:
        data: Any = attribute
        return bool(data.value.data)


class DimsSetting(Setting["Dims | None"]):
    """A list of numbers, one for each axis that it is about; `None` leaves the op its default.

    `usual` gives what a layer shows that was given none: the default of the API's documentation.
    """

    def __init__(self, prop: str | None = None, usual: Callable[[Any], Sequence[int] | None] | None = None) -> None:
        super().__init__(None, prop)
        self._usual = usual

    def unset(self, layer: ILayer) -> Dims | None:
        found = None if self._usual is None else self._usual(layer)
        return None if found is None else Dims(found)

    def accepted(self, value: Any) -> Dims:
        if isinstance(value, Dims):
            return value
        return Dims(cast("Iterable[int]", value) if isinstance(value, Iterable) else [value])

    def to_property(self, value: Any) -> object:
        return list(value)

    def from_property(self, attribute: Attribute) -> Dims:
        if isinstance(attribute, DimsAttr):
            return Dims(dim if isinstance(dim, int) else -1 for dim in attribute.dims())
        data: Any = attribute
        return Dims(data.get_values())

    if TYPE_CHECKING:  # any sequence of numbers is taken

        def __set__(self, layer: ILayer, value: Dims | Sequence[int] | None) -> None: ...


class PermutationSetting(DimsSetting):
    """An order of axes."""

    def unset(self, layer: ILayer) -> Dims | None:
        return Permutation(range(MAX_DIMS))

    def accepted(self, value: Any) -> Dims:
        return Permutation(value)


class WeightsSetting(Setting["Array"]):
    """Numbers that a layer holds: given as an array, as `Weights` or None for none, shown as an array of one
    dimension.
    """

    def __init__(self) -> None:
        super().__init__(cast("Array", None))

    def unset(self, layer: ILayer) -> Array:
        return as_weights(None).numpy()

    def accepted(self, value: Any) -> Array:
        given = as_weights(value)
        if given.lacks_values:
            raise InvalidModelError(f"{self.name} weights has non-zero count but null values")
        return given.numpy()

    def __get__(self, layer: ILayer | None, owner: type[ILayer]) -> Any:
        found = super().__get__(layer, owner)  # pyright: ignore[reportCallIssue, reportArgumentType]
        return found if layer is None else cast("Array", found).reshape(-1)

    if TYPE_CHECKING:

        def __set__(self, layer: ILayer, value: Weights | Array | None) -> None: ...


class Deprecated2d:
    """The old name of a list of two numbers (tensorrt-features.md#2.16)."""

    def __init__(self, now: str) -> None:
        self._now = now

    @overload
    def __get__(self, layer: None, owner: type[ILayer]) -> Deprecated2d: ...
    @overload
    def __get__(self, layer: ILayer, owner: type[ILayer]) -> DimsHW: ...
    def __get__(self, layer: ILayer | None, owner: type[ILayer]) -> DimsHW | Deprecated2d:
        if layer is None:
            return self
        self._warn()
        return DimsHW(getattr(layer, self._now))

    def __set__(self, layer: ILayer, value: Sequence[int]) -> None:
        self._warn()
        setattr(layer, self._now, DimsHW(value))

    def _warn(self) -> None:
        deprecated(self._now, level=4)
