"""What is known about sizes inside a kernel from its launches: extents as expressions of the network's dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.plan.expression import ExpressionAttr, PointerAttr
from mlirt.dialects.plan.ops import BufferOp, InputOp, LaunchOp, ViewOp, WeightOp
from mlirt.dialects.symbolic import Dim, ceil_div, floor_div, maximum, minimum, modulo
from mlirt.dialects.symbolic_bounds import is_below
from mlirt.dialects.tensor_types import stored_bytes
from mlirt.dialects.typical_sizes import named_bounds, typical, typical_values

_MAX_COMBINATIONS = 1024
_INT32_LIMIT = 2**31
_RULES: Mapping[str, Callable[[Dim, Dim], Dim]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divui": floor_div,
    "arith.floordivsi": floor_div,
    "arith.remui": modulo,
    "arith.ceildivsi": ceil_div,
    "arith.maxsi": maximum,
    "arith.minsi": minimum,
}


class LaunchSizes:
    """The sizes of one launch of a kernel."""

    def __init__(self, func: FuncOp, launch: LaunchOp) -> None:
        self.launch = launch
        self._known: dict[SSAValue, Dim] = {}
        self._pointers: dict[SSAValue, PointerAttr] = {}
        self._typical = typical_values(launch.parent) if launch.parent is not None else {}
        for name, given in zip(func.body.block.args, launch.arguments(), strict=True):
            if isinstance(given, ExpressionAttr):
                self._known[name] = given.value()
            elif isinstance(given, PointerAttr):
                self._pointers[name] = given

    def size(self, value: SSAValue) -> Dim | None:
        """An `index` value that the host can compute before the launch; None where it cannot."""
        if value in self._known:
            return self._known[value]
        op = value.owner
        if not isinstance(op, Operation):
            return None
        if isinstance(op, arith.ConstantOp):
            return op.value.value.data if isinstance(op.value, IntegerAttr) else None
        if op.name not in _RULES:
            return None
        operands = [self.size(operand) for operand in op.operands]
        left, right = operands
        if left is None or right is None:
            return None
        result = self._known[value] = _RULES[op.name](left, right)
        return result

    def count(self, extents: Sequence[SSAValue]) -> Dim | None:
        """How many iterations a box has."""
        total: Dim = 1
        for extent in extents:
            size = self.size(extent)
            if size is None:
                return None
            total = total * size
        return total

    def guess(self, extents: Sequence[SSAValue]) -> int:
        """About how many iterations a box has; many where nothing is known."""
        count = self.count(extents)
        return _MAX_COMBINATIONS if count is None else typical(count, self._typical)

    def is_multiple(self, value: SSAValue | int, number: int) -> bool:
        """Whether a size is certain to be a multiple of a number, whatever the dynamic dimensions are."""
        size = value if isinstance(value, int) else self.size(value)
        return size is not None and modulo(size, number) == 0

    def is_aligned(self, buffer: SSAValue, bytes_: int) -> bool:
        """Whether a buffer argument points to a multiple of `bytes_`; buffers themselves start at multiples of 256."""
        pointer = self._pointers.get(buffer)
        offset = None if pointer is None else pointer.value()
        if offset is None or pointer is None or modulo(offset, bytes_) != 0:
            return False
        return self._root_is_aligned(self.launch.buffers[pointer.operand.data], bytes_)

    def _root_is_aligned(self, memory: SSAValue, bytes_: int) -> bool:
        owner = memory.owner
        if isinstance(owner, ViewOp):
            offset = owner.offset.value()
            return modulo(offset, bytes_) == 0 and self._root_is_aligned(owner.source, bytes_)
        return isinstance(owner, BufferOp | InputOp | WeightOp)

    def fits_int32(self, count: Dim | None, element_bytes: int = 1) -> bool:
        """Whether 32-bit indices are enough for all lengths that profiles allow: no buffer of elements of at least so
        many bytes, and no loop, of `count` iterations, is that large.
        """
        block = self.launch.parent
        bounds = named_bounds(block) if block is not None else {}
        sizes = [_bytes_of(memory) for memory in self.launch.buffers]
        most = max(_INT32_LIMIT, _INT32_LIMIT // 2 * element_bytes)
        small = all(size is not None and is_below(size, most, bounds) for size in sizes)
        return small and count is not None and is_below(count, _INT32_LIMIT // 2, bounds)


def _bytes_of(memory: SSAValue) -> Dim | None:
    owner = memory.owner
    if isinstance(owner, BufferOp | ViewOp):
        return owner.bytes.value()
    if isinstance(owner, WeightOp):
        return owner.bytes.value.data
    return stored_bytes(owner.source.type) if isinstance(owner, InputOp) else None
