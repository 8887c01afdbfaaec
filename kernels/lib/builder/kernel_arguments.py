"""The arguments of a kernel: each is bound to a buffer, a size or a number of the host program as it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, FloatAttr, IndexType, MemRefType, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.tensor_map import TensorMapType
from mlirt.dialects.plan.expression import Argument, ExpressionAttr, PointerAttr
from mlirt.dialects.plan.tensor_map import TensorMapAttr, Walk
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_float
from mlirt.kernels.lib.builder.argument_roles import TensorRoles, number_role
from mlirt.kernels.lib.builder.block_writer import BlockWriter
from mlirt.kernels.lib.builder.placement import Packed
from mlirt.kernels.lib.builder.run_values import Value, value_of

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array
    from mlirt.kernels.lib.tactics.lowering import Lowering

Stride: TypeAlias = "Value | int"
_CONSTANT_STRIDES = (-1, 0, 1)


class KernelArguments(BlockWriter):
    """The function of a kernel and what its arguments are bound to."""

    def __init__(self, lowering: Lowering, family: str) -> None:
        self.function = FuncOp(family, [], family=family)
        super().__init__(self.function.body.block)
        self.lowering = lowering
        self.constant_sizes = lowering.target.kind == "cuda"
        """Whether numbers that sizes and strides are become part of the code."""
        self.function.attributes["target"] = StringAttr(lowering.target.kind)
        self._arguments: list[Argument] = []
        self._buffers: list[SSAValue] = []
        self._memories: dict[tuple[SSAValue, str, Attribute, tuple[int, ...]], Value] = {}
        self._sizes: dict[Dim, Value] = {}
        self._named_sizes: dict[str, Value] = {}
        self._strides: dict[SSAValue, list[Stride]] = {}
        self._places: dict[SSAValue, tuple[SSAValue, str]] = {}  # the buffers and offsets that arguments are bound to
        self._tensors: dict[SSAValue, SSAValue] = {}  # by the arguments that are their memory
        self._steps: dict[SSAValue, SSAValue | None] = {}  # by the arguments that are strides, with whose they are

    def buffer(self, value: SSAValue, elements: Dim = 0, element: Attribute | None = None) -> Value:
        """The memory of a tensor value, as a pointer to its element at index zero, moved on by a number of `elements`.

        Another type `element` of as many bytes is what they are taken for.
        """
        element = element or element_of(value.type)
        place = self.lowering.placements[value]
        memory = self.memory(place.buffer, element, place.offset + elements * byte_width(element), place.part)
        self._tensors.setdefault(memory, value)
        return memory

    def memory(self, buffer: SSAValue, element: Attribute, offset: Dim = 0, part: tuple[int, ...] = ()) -> Value:
        """A pointer into a `plan` buffer, `offset` bytes from its start; the same place is the same argument.

        With a `part`, nothing but that part of the buffer is touched.
        """
        key = (buffer, str(offset), element, part)
        if key not in self._memories:
            if buffer not in self._buffers:
                self._buffers.append(buffer)
            pointer = PointerAttr.of(self._buffers.index(buffer), offset, part)
            self._memories[key] = self._argument(MemRefType(element, [DYNAMIC_INDEX]), pointer)
            self._places[self._memories[key]] = buffer, str(offset)
        return self._memories[key]

    def tensor_map(
        self,
        buffer: SSAValue,
        element: Attribute,
        offset: Dim,
        sizes: Sequence[Dim],
        steps: Sequence[Dim],
        box: Sequence[int],
        swizzle: int,
        walk: Walk | None = None,
        *,
        tf32: bool = False,
    ) -> Value:
        """A description of the tensor that starts `offset` bytes into a `plan` buffer, for copies of a `box`.

        With `tf32` the copies round float32 to 10 bits of mantissa.
        """
        if buffer not in self._buffers:
            self._buffers.append(buffer)
        position = self._buffers.index(buffer)
        bound = TensorMapAttr.of(position, offset, element, sizes, steps, box, swizzle, walk, tf32=tf32)
        type_ = TensorMapType.of(element, box, swizzle, len(walk.stride) if walk else 0, tf32=tf32)
        made = self._argument(type_, bound)
        self._places[made] = buffer, str(offset)
        return made

    def weights(self, made: Array | Packed, hint: str) -> Value:
        """A pointer to an array that the lowering made, for example packed weights."""
        from mlirt.dialects.tensor_types import element_type

        array = made.array if isinstance(made, Packed) else made
        return self.memory(self.lowering.placements.new_weight(made, hint), element_type(array.dtype.name))

    def size(self, dim: Dim) -> Value:
        """A size as an `index` value.

        On a GPU numbers are constants, so that index arithmetic folds. On the CPU every number is an argument of its
        own, even of equal ones: the text of a kernel must not tell which sizes happen to coincide. Equal symbolic
        sizes share one.
        """
        if isinstance(dim, int) and self.constant_sizes:
            return self.constant(dim)
        if dim not in self._sizes or isinstance(dim, int):
            self._sizes[dim] = self._argument(IndexType(), ExpressionAttr.of(dim))
        return self._sizes[dim]

    def named_size(self, name: str, dim: Dim) -> Value:
        """A size that is one argument of the kernel wherever it is used, under a name."""
        if name not in self._named_sizes:
            self._named_sizes[name] = size = self.size(dim)
            size.name_hint = size.name_hint or name
        return self._named_sizes[name]

    def scalar(self, value: float, type_: Attribute) -> Value:
        """A number as an argument: kernels that differ in it are shared."""
        if is_float(type_):
            return self._argument(type_, FloatAttr(value, cast("AnyFloat", type_)))
        return self._argument(type_, ExpressionAttr.of(int(value)))

    def _argument(self, type_: Attribute, bound_to: Argument) -> Value:
        self._arguments.append(bound_to)
        block = self.function.body.block
        return value_of(block.insert_arg(type_, len(block.args)))

    def strides(self, value: SSAValue) -> list[Stride]:
        """The distance in elements between neighbours along each dimension; numbers where they shape the code."""
        if value not in self._strides:
            steps = self.lowering.placements[value].strides
            sizes = dims(value.type)
            self._strides[value] = [
                0 if size == 1 else self.stride(step, value) for size, step in zip(sizes, steps, strict=True)
            ]
        return self._strides[value]

    def stride(self, step: Dim, tensor: SSAValue | None = None) -> Stride:
        """A stride: -1, 0 and 1 are part of the code, other numbers only on a GPU."""
        if isinstance(step, int) and (self.constant_sizes or step in _CONSTANT_STRIDES):
            return step
        size = self.size(step)
        self._steps.setdefault(size, tensor)
        return size

    def name_arguments(self, layer: Operation) -> None:
        """Give the arguments without a name the names of what they are to a layer."""
        roles = TensorRoles(layer, self.lowering.placements)
        for argument in self.function.body.block.args:
            if argument.name_hint is None:
                argument.name_hint = self._role(argument, roles)

    def _role(self, argument: SSAValue, roles: TensorRoles) -> str:
        if argument in self._places:
            return roles.of_tensor(self._tensors.get(argument)) or roles.of_memory(*self._places[argument])
        if argument in self._steps:
            owner = roles.of_tensor(self._steps[argument])
            return "step" if owner is None else f"{owner}_step"
        return "size" if isinstance(argument.type, IndexType) else number_role(argument)

    @property
    def is_cuda(self) -> bool:
        return self.lowering.target.kind == "cuda"
