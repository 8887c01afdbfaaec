"""The numba types of this library: vectors of lanes, register tiles of vectors, and pointers to elements in memory."""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cpu_intrinsics.untyped import ir, models, register_model, types

# What a register holds for each element type in memory: the 16-bit floats are widened.
REGISTER_TYPES: dict[str, Any] = {
    "float16": types.float32,
    "bfloat16": types.float32,
    "float32": types.float32,
    "float64": types.float64,
    "bool": types.boolean,
    **{f"{sign}int{width}": getattr(types, f"{sign}int{width}") for sign in ("", "u") for width in (8, 16, 32, 64)},
}

_LLVM_TYPES: dict[Any, Any] = {
    types.float32: ir.FloatType(),
    types.float64: ir.DoubleType(),
    types.boolean: ir.IntType(1),
    **{getattr(types, f"{sign}int{width}"): ir.IntType(width) for sign in ("", "u") for width in (8, 16, 32, 64)},
}


def llvm_scalar(element: Any) -> Any:
    """The LLVM type of one lane."""
    return _LLVM_TYPES[element]


def llvm_memory(name: str) -> Any:
    """The LLVM type of an element in memory; 16-bit floats are read as integers, booleans take a byte."""
    if name in ("float16", "bfloat16"):
        return ir.IntType(16)
    return ir.IntType(8) if name == "bool" else _LLVM_TYPES[REGISTER_TYPES[name]]


def byte_width(name: str) -> int:
    """Bytes of an element in memory."""
    kind = llvm_memory(name)
    return {ir.FloatType(): 4, ir.DoubleType(): 8}.get(kind) or kind.width // 8


class Vector(types.Type):  # pyright: ignore[reportUntypedBaseClass]
    """A fixed number of lanes of one scalar type."""

    def __init__(self, element: Any, lanes: int) -> None:
        self.element = element
        self.lanes = lanes
        types.Type.__init__(self, name=f"{element}x{lanes}")


class Tile(types.Type):  # pyright: ignore[reportUntypedBaseClass]
    """`rows` x `columns` vectors that live in registers."""

    def __init__(self, rows: int, columns: int, lanes: int, element: Any = types.float32) -> None:
        self.rows = rows
        self.columns = columns
        self.lanes = lanes
        self.element = element
        types.Type.__init__(self, name=f"tile({rows}x{columns} of {element}x{lanes})")

    @property
    def vector(self) -> Vector:
        return Vector(self.element, self.lanes)


class Pointer(types.Type):  # pyright: ignore[reportUntypedBaseClass]
    """The address of elements; `constant` where the kernel never writes them."""

    def __init__(self, element: str, constant: bool) -> None:
        self.element = element
        self.constant = constant
        types.Type.__init__(self, name=f"{'constant ' if constant else ''}{element}*")


def llvm_vector(element: Any, lanes: int) -> Any:
    return ir.VectorType(llvm_scalar(element), lanes)


@register_model(Vector)
class VectorModel(models.PrimitiveModel):  # pyright: ignore[reportUntypedBaseClass]
    """A vector is an LLVM vector."""

    def __init__(self, manager: Any, fe_type: Vector) -> None:
        models.PrimitiveModel.__init__(self, manager, fe_type, llvm_vector(fe_type.element, fe_type.lanes))


@register_model(Tile)
class TileModel(models.PrimitiveModel):  # pyright: ignore[reportUntypedBaseClass]
    """A tile is an LLVM array of vectors, row by row, which the optimiser takes apart."""

    def __init__(self, manager: Any, fe_type: Tile) -> None:
        array = ir.ArrayType(llvm_vector(fe_type.element, fe_type.lanes), fe_type.rows * fe_type.columns)
        models.PrimitiveModel.__init__(self, manager, fe_type, array)


@register_model(Pointer)
class PointerModel(models.PrimitiveModel):  # pyright: ignore[reportUntypedBaseClass]
    """A pointer is an LLVM pointer to the element in memory."""

    def __init__(self, manager: Any, fe_type: Pointer) -> None:
        models.PrimitiveModel.__init__(self, manager, fe_type, llvm_memory(fe_type.element).as_pointer())
