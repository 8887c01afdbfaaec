"""Transposition and reshaping: the same elements in other places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerType, TensorType, i64
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integers
from mlirt.dialects.length_requirements import LengthRequirement, at_least, equal, multiple
from mlirt.dialects.symbolic import Dim, floor_div, product
from mlirt.dialects.tensor_op import TensorOp, check_lengths, require
from mlirt.dialects.tensor_types import Tensor, dims, is_unknown, with_dims
from mlirt.dialects.trt.shape_values import shape_operand, unknown

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


_NOTHING = "the other lengths make 0 elements"


@irdl_op_definition
class ShuffleOp(TensorOp):
    """Transpose, then reshape, then transpose again; each step may be absent (tensorrt-features.md#1.37a-1.37c).

    Axis k of a transposed tensor is axis permutation[k] of the one before. In the new shape -1 stands for the length
    that keeps the number of elements, and 0, with `zero_is_placeholder`, for the length of the same axis before. The
    shape is the property `reshape_dims`, or the 1-D integer operand `shape`, with the same meaning at run time.

    C1: first_transpose is a permutation of the input's axes. C2: second_transpose is a permutation of the new axes.
    C3: the shape is given once, by property or operand. C4: the shape operand is a 1-D integer tensor of constant
    length. C5: lengths are -1 (at most once), 0 or positive. C6: a placeholder stands for an axis that the input has.
    C7: the number of elements stays the same, and -1 has exactly one solution.

    Example: `%y = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>, reshape_dims = #trt.dims<["0", "-1"]>} :
    (tensor<2x3x4xf32>) -> tensor<2x12xf32>`
    """

    name = "trt.shuffle"

    input = operand_def(TensorType)
    shape = opt_operand_def(TensorType)
    first_transpose = opt_prop_def(DenseArrayBase.constr(i64))
    reshape_dims = opt_prop_def(DimsAttr)
    second_transpose = opt_prop_def(DenseArrayBase.constr(i64))
    zero_is_placeholder = prop_def(BoolAttr, default_value=BoolAttr.from_bool(True))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input (`,` $shape^)? attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        before = len(dims(self.input.type))
        if self.first_transpose is not None:
            _check_permutation("C1", self.name, "first_transpose", integers(self.first_transpose), before)
        require(
            self.shape is None or self.reshape_dims is None,
            f"C3: {self.name} has the shape as an operand and as reshape_dims, expected one of them",
        )
        written = self._written_dims()
        after = before if written is None else len(written)
        if self.second_transpose is not None:
            _check_permutation("C2", self.name, "second_transpose", integers(self.second_transpose), after)
        if written is not None:
            reshaped_dims(self.transposed_dims(), written, self.places, self.name)

    def length_requirements(self) -> Iterator[LengthRequirement]:
        written, before = self._written_dims(), self.transposed_dims()
        if written is not None:
            yield from _keeps_elements(before, written, self.reshaped_dims(), self.name)

    @property
    def places(self) -> bool:
        """Whether a 0 copies a length."""
        return bool(self.zero_is_placeholder.value.data)

    def _written_dims(self) -> tuple[Dim, ...] | None:
        if self.shape is not None:
            return shape_operand(self, "C4", self.shape, "shape")
        return None if self.reshape_dims is None else self.reshape_dims.dims()

    def transposed_dims(self) -> tuple[Dim, ...]:
        """The dimensions after the first transposition."""
        return permuted(dims(self.input.type), self.first_transpose)

    def reshaped_dims(self) -> tuple[Dim, ...]:
        """The dimensions after the reshape, placeholders resolved."""
        written = self._written_dims()
        before = self.transposed_dims()
        return before if written is None else reshaped_dims(before, written, self.places, self.name)

    def infer(self) -> Sequence[Tensor]:
        return [with_dims(self.input.type, permuted(self.reshaped_dims(), self.second_transpose))]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.symbol_values import resolve

        x, *shape = arrays
        if self.first_transpose is not None:
            x = x.transpose(integers(self.first_transpose))
        if shape:
            x = self._reshaped(x, tuple(int(size) for size in shape[0]))
        elif self.reshape_dims is not None:
            x = self._reshaped(x, resolve(self, self.reshape_dims.dims(), arrays))
        return [x if self.second_transpose is None else x.transpose(integers(self.second_transpose))]

    def _reshaped(self, x: Array, written: Sequence[int]) -> Array:
        after = reshaped_dims(x.shape, written, self.places, self.name)
        check_lengths(_keeps_elements(x.shape, written, after, self.name))
        return x.reshape(_numbers(after))


def permuted(shape: Sequence[Dim], permutation: DenseArrayBase[IntegerType] | None) -> tuple[Dim, ...]:
    """Dimensions in the order of a permutation, unchanged without one."""
    return tuple(shape) if permutation is None else tuple(shape[axis] for axis in integers(permutation))


def reshaped_dims(before: Sequence[Dim], written: Sequence[Dim], places: bool, name: str) -> tuple[Dim, ...]:
    """The dimensions that a written shape with its 0 and -1 stands for; raises `VerifyException` (C5, C6, C7)."""
    text = f"[{', '.join(map(str, written))}]"
    numbers = [size for size in written if isinstance(size, int)]
    require(
        min(numbers, default=0) >= -1 and numbers.count(-1) <= 1,
        f"C5: {text} is no shape for {name}: one -1, else lengths",
    )
    result = list(written)
    if places:
        for axis, size in enumerate(written):
            if size == 0:
                require(
                    axis < len(before),
                    f"C6: the 0 on axis {axis} of {text} copies an axis that the input of {name} lacks",
                )
                result[axis] = before[axis]
    if -1 in result:
        total, rest = product(list(before)), product([size for size in result if size != -1])
        require(rest != 0, f"C7: {name} from {_change(before, written)}: -1 is undetermined, because {_NOTHING}")
        axis = result.index(-1)
        quotient = floor_div(total, rest)
        result[axis] = unknown(axis) if is_unknown(quotient) else quotient
    return tuple(result)


def _keeps_elements(
    before: Sequence[Dim], written: Sequence[Dim], after: Sequence[Dim], name: str
) -> Iterator[LengthRequirement]:
    """The lengths make as many elements as there are, and -1 has one solution."""
    total, label = product(list(before)), f"{name} from {_change(before, written)}"
    if -1 not in written:
        fault = f"{label}: {{left}} elements became {{right}}"
        yield equal("C7", label, total, product(list(after)), fault)
        return
    axis = written.index(-1)
    rest = product([*after[:axis], *after[axis + 1 :]])
    if after[axis] * rest != total:
        yield at_least("C7", f"{label}: -1 is undetermined, because {_NOTHING}", rest, 1)
        yield multiple("C7", f"{label}: no length in place of -1 keeps {{left}} elements", total, rest)


def _change(before: Sequence[Dim], after: Sequence[Dim]) -> str:
    return f"[{', '.join(map(str, before))}] to [{', '.join(map(str, after))}]"


def _check_permutation(constraint: str, name: str, label: str, permutation: Sequence[int], rank: int) -> None:
    require(
        sorted(permutation) == list(range(rank)),
        f"{constraint}: {label} {list(permutation)} of {name} is not a permutation of {rank} axes",
    )


def _numbers(shape: Sequence[Dim]) -> tuple[int, ...]:
    return tuple(size for size in shape if isinstance(size, int))
