"""What all fused ops share: scalar regions, accesses, and their meaning on NumPy arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.symbolic import Dim, coefficient_of, evaluate, substitute, sym, symbols
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import element_of, rank
from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End a scalar region with its values."""

    name = "fused.yield"

    values = var_operand_def(AnyAttr())
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict $values `:` type($values)"


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The current position along an iteration dimension, as an `index`.

    Example: `%i = fused.index {dim = 1 : i64} : index`
    """

    name = "fused.index"

    dim = prop_def(IntegerAttr)
    result = result_def(IndexType())
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, dim: int):
        super().__init__(properties={"dim": IntegerAttr(dim, i64)}, result_types=[IndexType()])


@irdl_op_definition
class SizeOp(IRDLOperation):
    """A size that is determined by the shapes of a run, as an `index`: the divisor of a mean over symbolic dimensions.

    Example: `%n = fused.size {value = "h*w"} : index`
    """

    name = "fused.size"

    value = prop_def(StringAttr)
    result = result_def(IndexType())
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, size: Dim):
        super().__init__(properties={"value": StringAttr(str(size))}, result_types=[IndexType()])

    def dimension(self) -> Dim:
        return parse(self.value.data)


class FusedOp(IRDLOperation):
    """An op that becomes one launch; `reference` executes it, regions included."""

    @abstractmethod
    def reference(self, *arrays: Array) -> Sequence[Array]:
        """The results for these operands, by NumPy."""


def scalar_region(element_types: Sequence[Attribute]) -> Region:
    """A region of one empty block with one scalar argument per element type."""
    return Region(Block(arg_types=element_types))


def identity_region(element: Attribute) -> Region:
    """A region that yields its only scalar argument."""
    region = scalar_region([element])
    region.block.add_op(YieldOp(operands=[[region.block.args[0]]]))
    return region


def yielded(region: Region) -> Sequence[SSAValue]:
    """The values that a scalar region ends with; raises `VerifyException` where it does not end with a yield."""
    terminator = region.block.last_op
    if not isinstance(terminator, YieldOp):
        raise VerifyException("a region of scalars does not end with fused.yield")
    return terminator.values


def is_identity(region: Region) -> bool:
    """Whether a region only yields its first argument."""
    return len(list(region.block.ops)) == 1 and list(yielded(region)) == [region.block.args[0]]


def inline(region: Region, arguments: Sequence[SSAValue], before: Operation) -> list[SSAValue]:
    """Copy a scalar region's ops in front of `before`, with its arguments replaced; returns the values that it
    yields.
    """
    block = before.parent
    assert block is not None
    return copy_region(region, arguments, lambda op: block.insert_op_before(op, before))


def copy_region(
    region: Region,
    arguments: Sequence[SSAValue],
    insert: Callable[[Operation], object],
    special: Mapping[str, Callable[[Operation], SSAValue]] | None = None,
) -> list[SSAValue]:
    """Hand copies of a scalar region's ops to `insert`, in order; returns the values that the region yields.

    An op whose name is in `special` is not copied: its result is the value that the function there gives.
    """
    mapping: dict[SSAValue, SSAValue] = dict(zip(region.block.args, arguments, strict=True))
    for op in region.block.ops:
        if isinstance(op, YieldOp):
            return [mapping.get(value, value) for value in op.values]
        if special is not None and op.name in special:
            mapping[op.results[0]] = special[op.name](op)
        else:
            insert(op.clone(value_mapper=mapping))
    raise VerifyException("a scalar region does not end with fused.yield")


def region_with(region: Region, types: Sequence[Attribute], taken: Sequence[int]) -> Region:
    """A copy of a scalar region with arguments of these types, of which number `taken[k]` is its argument `k`."""
    block = Block(arg_types=types)
    block.add_op(YieldOp(operands=[copy_region(region, [block.args[one] for one in taken], block.add_op)]))
    return Region(block)


def check_region(op: Operation, region: Region, arguments: Sequence[Attribute], results: Sequence[Attribute]) -> None:
    """Raise `VerifyException` unless a scalar region takes and yields these types."""
    label = op.name
    require(len(region.blocks) == 1, f"{label}: a scalar region has one block, this one has {len(region.blocks)}")
    found = [arg.type for arg in region.block.args]
    if found != list(arguments):
        raise VerifyException(
            f"{label}: the region takes ({', '.join(map(str, found))}), expected ({', '.join(map(str, arguments))})"
        )
    require(isinstance(region.block.last_op, YieldOp), f"{label}: the region does not end with fused.yield")
    given = [value.type for value in yielded(region)]
    if given != list(results):
        raise VerifyException(
            f"{label}: the region yields ({', '.join(map(str, given))}), expected ({', '.join(map(str, results))})"
        )


def check_access(op: Operation, access: AccessAttr, operand: Attribute, space_rank: int) -> None:
    """Raise `VerifyException` unless an access fits its operand and is linear in the iteration dimensions."""
    indices = access.indices()
    if len(indices) != rank(operand):
        raise VerifyException(
            f"{op.name}: access {access} has {len(indices)} indices, its operand {operand} has rank {rank(operand)}"
        )
    for index in indices:
        for axis in range(space_rank):
            try:
                coefficient_of(index, f"d{axis}")
            except ValueError as error:
                raise VerifyException(f"{op.name}: {error}") from error


def gather_operand(array: Array, access: AccessAttr, space: Sequence[int], env: Mapping[str, int]) -> Array:
    """The operand's elements laid out over the whole iteration space; raises `InvalidInputError` for others."""
    import numpy as np

    picked: list[Array] = []
    for dimension, index in enumerate(access.indices()):
        index = substitute(index, env)
        position = np.zeros((1,) * len(space), np.int64)
        for axis, extent in enumerate(space):
            factor = coefficient_of(index, f"d{axis}")
            assert isinstance(factor, int)
            shape = [extent if k == axis else 1 for k in range(len(space))]
            position = position + factor * np.arange(extent).reshape(shape) if factor else position
        offset = substitute(index, {f"d{axis}": 0 for axis in range(len(space))})
        assert isinstance(offset, int)
        position = position + offset
        length = array.shape[dimension]
        if 0 not in space and not (0 <= position.min() and position.max() < length):
            raise InvalidInputError(
                f"elements {position.min()} to {position.max()} of an operand whose dimension {dimension} has {length}"
            )
        picked.append(position)
    return np.broadcast_to(array[tuple(picked)] if picked else array, tuple(space))


def bind_dims(
    op: Operation, arrays: Sequence[Array], space: Sequence[int] = (), space_dims: Sequence[Dim] = ()
) -> dict[str, int]:
    """The values of the network's symbols, read off actual shapes, also those of a result where they are known."""
    from mlirt.dialects.symbol_values import known

    env = known(op, arrays)
    for dim, size in zip(space_dims, space, strict=True):
        names = symbols(dim)
        if len(names) == 1 and dim == sym(*names):
            env.setdefault(str(*names), size)
    return env


def numbers_of(space: Sequence[Dim], env: Mapping[str, int]) -> list[int]:
    """Dimensions as numbers; raises `InvalidInputError` with the name of a symbol that no operand determines."""
    try:
        return [evaluate(dim, env) for dim in space]
    except KeyError as error:
        raise InvalidInputError(f"the length {error.args[0]} is not known: no input has this dimension") from error


def region_values(space: Sequence[int], env: Mapping[str, int]) -> dict[str, Callable[[Operation], Array]]:
    """The meaning of the ops in scalar regions that ask for the place or a size, over an iteration space."""
    import numpy as np

    def index(op: Operation) -> Array:
        assert isinstance(op, IndexOp)
        axis = op.dim.value.data
        shape = [-1 if k == axis else 1 for k in range(len(space))]
        return np.arange(space[axis]).reshape(shape)

    def size(op: Operation) -> Array:
        assert isinstance(op, SizeOp)
        return np.asarray(numbers_of([op.dimension()], env)[0], np.int64)

    return {IndexOp.name: index, SizeOp.name: size}


def element_types(values: Sequence[SSAValue]) -> list[Attribute]:
    """The element types of tensor values."""
    return [element_of(value.type) for value in values]
