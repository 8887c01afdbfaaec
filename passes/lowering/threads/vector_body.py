"""What one thread does for several neighbouring iterations, with 16-byte accesses where memory is contiguous."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.kernel.buffers import memory
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, StoreOp, stride_values
from mlirt.dialects.kernel.fragment import FragmentElementOp, FragmentOp, LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.tensor_types import byte_width
from mlirt.passes.lowering.index_arithmetic import known
from mlirt.passes.lowering.threads.code_writer import CodeWriter
from mlirt.passes.lowering.threads.launch_sizes import LaunchSizes
from mlirt.passes.lowering.threads.thread_body import ThreadBody

_WIDE = 16  # bytes of the widest access
_FEWEST = 8 * 1024  # iterations below which there is nothing to gain
_LONGEST = 160  # ops after unrolling


def vector_width(outer: ParallelOp, launches: Sequence[LaunchSizes]) -> int:
    """How many neighbouring iterations one thread may do; 1 where nothing is gained by more than one."""
    ops = list(outer.body.block.ops)
    accesses = [op for op in ops if isinstance(op, LoadOp | StoreOp)]
    if not outer.extents or not accesses or any(op.regions for op in ops):
        return 1
    contiguous = [op for op in accesses if is_contiguous(op, outer)]
    if not contiguous or not all(isinstance(op, LoadOp) or op in contiguous for op in accesses):
        return 1
    if any(op in contiguous and not _is_loop_index(op, outer) for op in accesses):
        return 1
    width = _WIDE // max(byte_width(memory(op.buffer).get_element_type()) for op in contiguous)
    length = known(outer.extents[-1])
    if width <= 1 or length is None or length % width or width * len(ops) > _LONGEST:
        return 1
    if not all(_has_aligned_rows(op, width) for op in contiguous):
        return 1
    for sizes in launches:
        count = sizes.count(outer.extents)
        if not isinstance(count, int) or count < _FEWEST or not _is_aligned(sizes, contiguous, width):
            return 1
    return width


def _is_aligned(sizes: LaunchSizes, accesses: Sequence[LoadOp | StoreOp], width: int) -> bool:
    return all(sizes.is_aligned(op.buffer, width * byte_width(memory(op.buffer).get_element_type())) for op in accesses)


def _has_aligned_rows(op: LoadOp | StoreOp, width: int) -> bool:
    """Whether every row starts at a multiple of the width."""
    return all(isinstance(stride, int) and stride % width == 0 for stride in stride_values(op)[:-1])


def is_contiguous(op: LoadOp | StoreOp, outer: ParallelOp) -> bool:
    """Whether neighbouring iterations access neighbouring elements."""
    strides = stride_values(op)
    return bool(strides) and strides[-1] == 1 and op.indices[-1] is outer.body.block.args[-1]


def _is_loop_index(op: LoadOp | StoreOp, outer: ParallelOp) -> bool:
    """Whether the other indices stay the same from one of the iterations to the next."""
    last = outer.body.block.args[-1]
    return all(index is not last and _is_plain(index, outer) for index in list(op.indices)[:-1])


def _is_plain(index: SSAValue, outer: ParallelOp) -> bool:
    return (
        index in outer.body.block.args
        or not isinstance(index.owner, Operation)
        or index.owner.parent is not (outer.body.block)
    )


class VectorBody(ThreadBody):
    """Loads come first as fragments, then every op once per element, then the stores."""

    def __init__(self, code: CodeWriter, mapping: dict[SSAValue, SSAValue], outer: ParallelOp, width: int) -> None:
        super().__init__(code, mapping)
        self.outer, self.width = outer, width

    def ops(self, block: Block) -> list[SSAValue]:
        code, last = self.code, self.outer.body.block.args[-1]
        start = code.mul(self.of(last), self.width)
        start.name_hint = last.name_hint or "start"
        self.mapping[last] = start
        elements: list[dict[SSAValue, SSAValue]] = [{} for _ in range(self.width)]
        positions: list[SSAValue] = []
        for op in block.ops:
            if op is block.last_op:
                break
            if isinstance(op, LoadOp | StoreOp) and is_contiguous(op, self.outer):
                self._access(op, elements)
            elif self._varies(op, elements[0]):
                positions = positions or [code.add(start, k) for k in range(self.width)]
                self._each(op, elements, positions)
            else:
                self.op(op)
        return []

    def _access(self, op: LoadOp | StoreOp, elements: list[dict[SSAValue, SSAValue]]) -> None:
        code, offsets = self.code, range(self.width)
        index = code.constant(0)
        for at, stride in zip(op.indices, stride_values(op), strict=True):
            index = code.add(index, code.mul(self.of(at), self.of(stride) if isinstance(stride, SSAValue) else stride))
        buffer = self.of(op.buffer)
        wide = self.width * byte_width(memory(buffer).get_element_type()) == _WIDE
        if isinstance(op, LoadOp):
            loaded = code.value(LoadFragmentOp(buffer, index, offsets, wide=wide))
            loaded.name_hint = op.result.name_hint
            for position, own in enumerate(elements):
                own[op.result] = code.value(FragmentElementOp(loaded, position))
        else:
            values = [own.get(op.value, self.of(op.value)) for own in elements]
            code.insert(StoreFragmentOp(code.value(FragmentOp(values)), buffer, index, offsets, wide=wide))

    def _varies(self, op: Operation, own: dict[SSAValue, SSAValue]) -> bool:
        last = self.outer.body.block.args[-1]
        operands = list(op.operands)
        if isinstance(op, LoadOp):
            operands = [index for index, stride in zip(op.indices, stride_values(op), strict=True) if stride != 0]
        return any(operand in own or operand is last for operand in operands)

    def _each(self, op: Operation, elements: list[dict[SSAValue, SSAValue]], positions: list[SSAValue]) -> None:
        last = self.outer.body.block.args[-1]
        for own, position in zip(elements, positions, strict=True):
            copy = self.code.insert(op.clone({**self.mapping, **own, last: position}))
            own.update(zip(op.results, copy.results, strict=True))
