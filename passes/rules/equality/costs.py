"""What layers of a network cost together: launches, the bytes that they move, and what they compute."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.dialects.device_files import gpu_device
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import evaluate, symbols
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_tensor
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.broadcast import BroadcastOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.dialects.trt.scale import ScaleOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.unary import UnaryKind, UnaryOp

POINTWISE = (ElementwiseOp, ActivationOp, UnaryOp, ScaleOp, SelectOp, IdentityOp, BroadcastOp)
_PRODUCTS = (MatrixMultiplyOp, ConvolutionOp, DeconvolutionOp)
_USUAL_LENGTH = 64  # of a size that only a run tells
_CHEAP, _DIVISION, _FUNCTION = 1, 8, 16  # operations of an element
_CHEAP_ACTIVATIONS = (ActivationKind.RELU, ActivationKind.CLIP, ActivationKind.LEAKY_RELU)
_CHEAP_FUNCTIONS = (UnaryKind.ABS, UnaryKind.NEG, UnaryKind.SIGN, UnaryKind.NOT, UnaryKind.FLOOR, UnaryKind.CEIL)
_NO_OVERLAP = 0.1  # of what is computed while memory moves, or the other way round
_MAX_SMALL = 1024  # elements of a constant; others are weights
_NEW_WEIGHTS = 0.01  # of a launch: weights that are made anew are no longer shared with whoever has the old ones
_LONGER_BODY = 1e-6  # of a microsecond, for each layer: of equal costs the shorter text counts


@dataclass(frozen=True)
class MachineRates:
    """Microseconds of a launch, and what is done in a microsecond: bytes moved, operations, multiply-adds."""

    launch: float
    moved: float
    operations: float
    products: float

    @staticmethod
    def of(target: str, device: str) -> MachineRates:
        """Those of a device; of a CPU those of a usual processor, as its files say nothing of memory."""
        if target == "cpu":
            return MachineRates(launch=4.0, moved=4e4, operations=5e4, products=2e5)
        gpu = gpu_device(device or "h200")
        lanes = gpu.processors * gpu.float_products * gpu.clock_mhz
        launch = gpu.tiles.launch / gpu.tiles.cycles_per_microsecond
        return MachineRates(launch=launch, moved=gpu.memory_gb_s * 1e3, operations=lanes, products=lanes)


class Costs:
    """Microseconds of layers that are run together; those in `new` are not in the network yet.

    What fuses counts as one launch, which moves only what goes in and comes out: pointwise layers with the layer in
    front whose only readers they are, or with the reduction behind.
    """

    def __init__(self, rates: MachineRates, sizes: Mapping[str, int], new: Block) -> None:
        self._rates, self._sizes, self._new = rates, sizes, new
        self._work: dict[Operation, float] = {}
        self._counts: dict[Attribute, int] = {}

    def of(self, ops: Sequence[Operation], operands: Mapping[SSAValue, SSAValue], kept: Collection[SSAValue]) -> float:
        """Of layers in order. `operands` says which value stands for an operand, where that is another one; `kept` is
        what others read.
        """
        groups = self._groups(ops, operands, kept)
        made = [op for op in ops if op.parent is self._new and isinstance(op, ConstantOp)]
        weights = sum(self._count(op.output) > _MAX_SMALL for op in made)
        time = _LONGER_BODY * len(ops) + _NEW_WEIGHTS * self._rates.launch * weights
        for members in groups.values():
            time += self._launch(members, operands, kept)
        return time

    def _groups(
        self, ops: Sequence[Operation], operands: Mapping[SSAValue, SSAValue], kept: Collection[SSAValue]
    ) -> dict[int, _Group]:
        given = {op: list(dict.fromkeys(operands.get(one, one) for one in op.operands)) for op in ops}
        readers: dict[SSAValue, list[Operation]] = {}
        for op in ops:
            for value in given[op]:
                readers.setdefault(value, []).append(op)
        group_of: dict[Operation, int] = {}
        groups: dict[int, _Group] = {}
        for place, op in enumerate(ops):
            if isinstance(op, ConstantOp):
                continue
            owners = ((value, value.owner) for value in given[op])
            made = {
                value: group_of[owner] for value, owner in owners if isinstance(owner, Operation) and owner in group_of
            }
            fronts: list[tuple[int, int]] = []
            for value, front in made.items():
                group = groups[front]
                inside = value not in kept and all(
                    reader is op or group_of.get(reader) == front for reader in readers[value]
                )
                others = {other for other in made.values() if other != front}
                if (inside and group.takes(op)) or (group.takes_row(op) and not _needs(groups, others, front)):
                    fronts.append((self._count(value), front))
            number = max(fronts)[1] if fronts else place
            group_of[op] = number
            groups.setdefault(number, _Group()).add(op, {one for one in made.values() if one != number})
            for value, front in made.items():
                if front != number:
                    groups[front].written.add(value)
        return groups

    def _launch(self, group: _Group, operands: Mapping[SSAValue, SSAValue], kept: Collection[SSAValue]) -> float:
        inside = {op.results[0] for op in group.ops}
        read = {value for op in group.ops for one in op.operands if (value := operands.get(one, one)) not in inside}
        written = group.written | {value for value in inside if value in kept}
        if all(_is_view(op) for op in group.ops):
            return 0.0
        moved = sum(self._bytes(value) for value in read | written)
        times = (moved / self._rates.moved, sum(map(self._time_of, group.ops)))
        return self._rates.launch + max(times) + _NO_OVERLAP * min(times)

    def _time_of(self, op: Operation) -> float:
        found = self._work.get(op)
        if found is None:
            found = self._computed(op)
            self._work[op] = found
        return found

    def _computed(self, op: Operation) -> float:
        if isinstance(op, _PRODUCTS):
            return self._products(op) / self._rates.products
        elements = max(map(self._count, (*op.operands, *op.results)))
        return 0.0 if _is_view(op) else elements * _operations(op) / self._rates.operations

    def _products(self, op: MatrixMultiplyOp | ConvolutionOp | DeconvolutionOp) -> float:
        if isinstance(op, MatrixMultiplyOp):
            lhs = self._lengths(op.lhs)
            inner = lhs[-2] if op.lhs_op.data is MatrixOperation.TRANSPOSE else lhs[-1]
            return self._count(op.output) * inner
        kernel = prod(self._lengths(op.kernel))
        if isinstance(op, ConvolutionOp):
            return self._count(op.output) * kernel / max(1, self._lengths(op.kernel)[0])
        return self._count(op.input) * kernel / max(1, self._lengths(op.kernel)[0])

    def _bytes(self, value: SSAValue) -> float:
        return self._count(value) * byte_width(element_of(value.type)) if is_tensor(value.type) else 0

    def _count(self, value: SSAValue) -> int:
        found = self._counts.get(value.type)
        if found is None:
            found = prod(self._lengths(value))
            self._counts[value.type] = found
        return found

    def _lengths(self, value: SSAValue) -> list[int]:
        return [self._number(one) for one in dims(value.type)] if is_tensor(value.type) else []

    def _number(self, size: object) -> int:
        if isinstance(size, int):
            return size
        names = symbols(size)  # pyright: ignore[reportArgumentType]
        return max(1, evaluate(size, {name: self._sizes.get(name, _USUAL_LENGTH) for name in names}))  # pyright: ignore[reportArgumentType]


class _Group:
    """Layers of one launch."""

    def __init__(self) -> None:
        self.ops: list[Operation] = []
        self.needs: set[int] = set()
        """The groups whose results it reads."""
        self.written: set[SSAValue] = set()
        self.is_pointwise = True
        self.reduction: ReduceOp | None = None

    def add(self, op: Operation, needs: set[int]) -> None:
        """One more layer in the launch."""
        self.ops.append(op)
        self.needs |= needs
        self.is_pointwise = self.is_pointwise and _is_pointwise(op)
        self.reduction = op if self.reduction is None and isinstance(op, ReduceOp) else self.reduction

    def takes(self, op: Operation) -> bool:
        """Whether a layer can be in the launch that computes all that it reads."""
        return _is_pointwise(op) or (isinstance(op, ReduceOp) and self.is_pointwise)

    def takes_row(self, op: Operation) -> bool:
        """Whether a layer belongs to the rows that the launch reduces, as in a normalization, whoever reads it."""
        if self.reduction is None:
            return False
        if isinstance(op, ReduceOp):
            return op.axes == self.reduction.axes and dims(op.input.type) == dims(self.reduction.input.type)
        return _is_pointwise(op)


def _needs(groups: Mapping[int, _Group], which: Collection[int], wanted: int) -> bool:
    """Whether some groups wait for another one."""
    seen, waiting = set(which), list(which)
    while waiting:
        for one in groups[waiting.pop()].needs - seen:
            seen.add(one)
            waiting.append(one)
    return wanted in seen


def _is_pointwise(op: Operation) -> bool:
    return isinstance(op, POINTWISE) or _is_view(op)


def _is_view(op: Operation) -> bool:
    """Whether a layer only gives memory other dimensions."""
    if not isinstance(op, ShuffleOp):
        return False
    orders = [integers(one) for one in (op.first_transpose, op.second_transpose) if one is not None]
    return all(list(order) == sorted(order) for order in orders)


def _operations(op: Operation) -> int:
    if isinstance(op, ElementwiseOp):
        return _DIVISION if op.kind.data in _SLOW else _CHEAP
    if isinstance(op, ActivationOp):
        return _CHEAP if op.kind.data in _CHEAP_ACTIVATIONS else _FUNCTION
    if isinstance(op, UnaryOp):
        return _CHEAP if op.kind.data in _CHEAP_FUNCTIONS else _FUNCTION
    return _CHEAP


_SLOW = (ElementwiseKind.DIV, ElementwiseKind.POW, ElementwiseKind.FLOOR_DIV, ElementwiseKind.MOD, ElementwiseKind.FMOD)
