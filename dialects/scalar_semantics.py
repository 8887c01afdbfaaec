"""What each scalar `arith` and `math` op means, lane-parallel on NumPy arrays: by its row in `scalar_ops.py`, or here.

Used wherever scalar regions are executed without a device: by the fused ops' `reference` and by the SIMT interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue

from mlirt.dialects.scalar_ops import SCALAR_OPS
from mlirt.errors import CompileError

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def scalar_dtype(type_: Attribute) -> np.dtype[Any]:
    """The NumPy dtype of a scalar type; `index` is int64."""
    import numpy as np

    from mlirt.dialects.tensor_types import numpy_dtype

    return np.dtype(np.int64) if isinstance(type_, IndexType) else numpy_dtype(type_)


# The order of `arith.cmpi` and `arith.cmpf` predicates as MLIR numbers them.
_CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_CMPF = (
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
)
_CONVERSIONS = frozenset(
    f"arith.{name}" for name in ("fptosi", "sitofp", "extf", "truncf", "trunci", "extsi", "index_cast")
)


def evaluate(op: Operation, operands: Sequence[Array]) -> Array:
    """The result of one scalar op on arrays of lanes; raises `CompileError` for an op without a meaning here."""
    import numpy as np

    with np.errstate(all="ignore"):
        if op.name == "arith.constant":
            return np.asarray(_constant(op), scalar_dtype(op.results[0].type))
        if op.name == "arith.cmpi":
            return _compare_integers(_CMPI[_predicate(op)], *operands)
        if op.name == "arith.cmpf":
            return _compare_floats(_CMPF[_predicate(op)], *operands)
        if op.name in _CONVERSIONS:
            return _convert(operands[0], scalar_dtype(op.results[0].type))
        if op.name == "arith.fptoui":
            signless = scalar_dtype(op.results[0].type)
            return _convert(operands[0], np.dtype(f"u{signless.itemsize}")).view(signless)
        if op.name in ("arith.extui", "arith.uitofp"):
            x = operands[0]
            unsigned = x.view(np.dtype(f"u{x.dtype.itemsize}")) if x.dtype.kind == "i" else x
            return unsigned.astype(scalar_dtype(op.results[0].type))
        if op.name == "arith.bitcast":
            bits = np.ascontiguousarray(operands[0]).reshape(operands[0].shape)  # it gives a scalar an axis
            return bits.view(scalar_dtype(op.results[0].type))
        if op.name not in SCALAR_OPS:
            raise CompileError(f"scalar op {op.name} has no meaning in NumPy; add it to dialects/scalar_ops.py")
        return np.asarray(SCALAR_OPS[op.name].meaning(*operands))


def evaluate_region(
    region: Region,
    arguments: Sequence[Array],
    special: Mapping[str, Callable[[Operation], Array]] | None = None,
    outer: Mapping[SSAValue, Array] | None = None,
) -> list[Array]:
    """The yielded arrays of a scalar region; `special` gives the meaning of ops such as `fused.index` by name."""
    values: dict[SSAValue, Array] = dict(outer or {})
    values.update(zip(region.block.args, arguments, strict=True))
    for op in region.block.ops:
        if op is region.block.last_op:
            return [values[operand] for operand in op.operands]
        if special and op.name in special:
            values[op.results[0]] = special[op.name](op)
        else:
            values[op.results[0]] = evaluate(op, [values[operand] for operand in op.operands])
    raise CompileError("a scalar region has no terminator")


def _constant(op: Operation) -> int | float:
    value = op.properties["value"]
    assert isinstance(value, IntegerAttr | FloatAttr)
    return value.value.data


def _predicate(op: Operation) -> int:
    attr = op.properties["predicate"]
    assert isinstance(attr, IntegerAttr)
    return attr.value.data


def _convert(x: Array, dtype: np.dtype[Any]) -> Array:
    from mlirt.dialects.wide_arithmetic import saturated

    if x.dtype.kind == "f" and dtype.kind in "iu":
        return saturated(x, dtype)
    if x.dtype.kind == "b" and dtype.kind == "i":
        return -x.astype(dtype)
    return x.astype(dtype)


def _compare_integers(predicate: str, a: Array, b: Array) -> Array:
    import numpy as np

    if predicate.startswith("u"):
        unsigned = np.dtype(f"u{a.dtype.itemsize}")
        a, b = a.astype(unsigned), b.astype(unsigned)
    name = predicate[-2:]
    table = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    return table[name](a, b)


def _compare_floats(predicate: str, a: Array, b: Array) -> Array:
    import numpy as np

    unordered = np.isnan(a) | np.isnan(b)
    if predicate in ("false", "true"):
        return np.full(unordered.shape, predicate == "true")
    if predicate in ("ord", "uno"):
        return unordered if predicate == "uno" else ~unordered
    table = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    result = table[predicate[1:]](a, b)
    return result | unordered if predicate[0] == "u" else result & ~unordered
