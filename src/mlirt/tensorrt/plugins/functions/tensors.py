"""A tensor as a function meets it: what it is like when the network is built, and where it lies in a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.errors import UnsupportedError
from mlirt.tensorrt.data_types import DataType, nptype, numpy_name
from mlirt.tensorrt.plugins.shape_expressions import DimsExprs, IDimensionExpr, Length
from mlirt.tensorrt.plugins.tensor_descriptions import NO_SCALE
from mlirt.tensorrt.run_enums import TensorFormat

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# TensorRT's name for a length.
ShapeExpr = IDimensionExpr


class ShapeExprs(DimsExprs):
    """The lengths of a tensor; `ShapeExprs(3)` has three, to be replaced."""

    def __init__(self, lengths: Iterable[Length] | int = ()) -> None:
        given = lengths if isinstance(lengths, int) else [_expression(one) for one in lengths]
        super().__init__(given)

    def numel(self) -> IDimensionExpr:
        """The number of elements."""
        count = IDimensionExpr(1)
        for length in self:
            count = count * length
        return count


class TensorDesc:
    """A tensor when the network is built: its type, and its lengths as formulas over those of the inputs."""

    def __init__(self, shape_expr: Iterable[Length], dtype: DataType) -> None:
        self.shape_expr = shape_expr
        self.dtype = dtype
        self.format = TensorFormat.LINEAR
        self.scale = NO_SCALE

    @property
    def shape_expr(self) -> ShapeExprs:
        """The lengths."""
        return self._lengths

    @shape_expr.setter
    def shape_expr(self, lengths: Iterable[Length]) -> None:
        self._lengths = ShapeExprs(lengths)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._lengths)

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths that are known now; -1 for the others."""
        return tuple(one.get_constant_value() if one.is_constant() else -1 for one in self._lengths)

    @property
    def has_shape(self) -> bool:
        """Whether all lengths are known now."""
        return -1 not in self.shape

    @property
    def is_shape_tensor(self) -> bool:
        """False: inputs that are shapes are not supported."""
        return False

    def like(self) -> TensorDesc:
        """A tensor of the same type and lengths."""
        return TensorDesc(self._lengths, self.dtype)

    def aliased(self, shape: Iterable[Length] | None = None) -> TensorDesc:
        """Not supported: an output has memory of its own."""
        raise UnsupportedError("aliased(): outputs that share an input's memory are not supported; use like()")

    def __repr__(self) -> str:
        return f"<TensorDesc {list(self._lengths)} {self.dtype.name}>"


class Tensor:
    """A tensor in a run, dense and in the order of rows, on the host or on the GPU."""

    def __init__(self, address: int, shape: Sequence[int], dtype: DataType, *, on_host: bool, written: bool) -> None:
        self.data_ptr, self.shape, self.dtype = address, tuple(shape), dtype
        self.format, self.scale = TensorFormat.LINEAR, NO_SCALE
        interface = {
            "data": (address, not written),
            "shape": self.shape,
            "typestr": _type_text(dtype),
            "strides": None,
            "version": 3,
        }
        if on_host:
            self.__array_interface__ = interface
        else:
            self.__cuda_array_interface__ = interface

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """How many elements lie between neighbours along each dimension."""
        found: list[int] = []
        step = 1
        for length in reversed(self.shape):
            found.append(step)
            step *= length
        return tuple(reversed(found))

    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    def array(self) -> Array:
        """The tensor, which lies on the host, as an array; inputs cannot be written to."""
        import numpy as np

        kind = np.dtype(nptype(self.dtype))
        if not self.numel():
            return np.empty(self.shape, kind)
        return np.asarray(self).view(kind)


def _type_text(dtype: DataType) -> str:
    """The type as the array interfaces have it; those that NumPy lacks are unsigned numbers of their size."""
    import numpy as np

    is_lacking = dtype in (DataType.BF16, DataType.FP8)
    return f"<u{dtype.itemsize}" if is_lacking else np.dtype(numpy_name(dtype)).str


def _expression(length: Length) -> IDimensionExpr:
    return length if isinstance(length, IDimensionExpr) else IDimensionExpr(int(length))
