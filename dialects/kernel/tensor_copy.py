"""Copies of TMA boxes, which the device makes by itself; one thread starts them, a barrier counts their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import SHARED
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import SYNCHRONIZES, Rule, Text
from mlirt.dialects.kernel.tensor_map import TensorMapType
from mlirt.dialects.kernel.transaction_barrier import BARRIERS

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

BOX_ALIGNMENT = 128
"""Bytes that a box in shared memory is aligned to."""
GLOBAL_ALIGNMENT = 16
"""Bytes that the place in memory is aligned to at which a box begins."""


def map_type(value: SSAValue) -> TensorMapType:
    """The type of a tensor map."""
    type_ = value.type
    assert isinstance(type_, TensorMapType)
    return type_


_RULES = (
    BARRIERS,
    Rule(
        "the target is shared memory of the map's element type",
        lambda x: x.target.memory_space == SHARED and x.target.get_element_type() == x.T.type,
        "copies {T.type} to shared memory, not to {target}",
    ),
    Rule(
        "there is a coordinate for each dimension",
        lambda x: len(x.coordinates) == x.map.rank,
        lambda x: f"{len(x.coordinates)} coordinates for a tensor with {x.map.rank} dimensions",
    ),
)


class CopyOp(Instruction):
    """A copy from a tensor map to shared memory."""

    map: SSAValue = fields.operand(TensorMapType, "T")
    coordinates: Sequence[SSAValue] = fields.indices()
    target: SSAValue = fields.memref()
    target_index: SSAValue = fields.index()
    barriers: SSAValue = fields.memref()
    barrier: SSAValue = fields.index()

    effects = SYNCHRONIZES
    is_asynchronous = True


@instruction
class LoadBoxOp(CopyOp):
    """Start to copy the box at some coordinates, outermost first; what lies outside of the tensor becomes zero.

    The barrier's current phase gets the bytes of the whole box. The target is 128-byte aligned (1024 with a swizzle),
    and a box begins at a multiple of 16 bytes of its innermost dimension: a device calls another start an illegal
    instruction, so that no box can be moved by single pixels along a line.

    Example: `kernel.load_box %map[%i, %j], %tiles[%k], %full[%s] : !kernel.tensor_map<f16, [64, 64], swizzle = 128>,
    memref<4096xf16, "shared">, memref<4xi64, "shared">`
    """

    name = "kernel.load_box"

    syntax = "$map `[` $coordinates `]` `,` $target `[` $target_index `]` `,` $barriers `[` $barrier `]`"
    rules = (*_RULES, Rule("the map is not walked by a window", lambda x: not x.map.spatial.data))
    cuda = Text("load_box", lambda x: f'"{x.T}", {x.map.rank}', hint="load")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        from mlirt.dialects.kernel.interpreter_tensor_copies import box, start_copies

        assert isinstance(site.op, LoadBoxOp)
        start_copies(x, site, map_type(site.op.map), box)


@instruction
class LoadWindowOp(CopyOp):
    """Start to copy channels of consecutive pixels of a window's walk, each moved by `offsets`; zeros outside.

    The coordinates are image, the pixel's along each spatial dimension, and channel. The window walks along rows, from
    the map's lower corner to its upper one by its strides, and on to the next image.

    Example: `kernel.load_window %map[%n, %y, %x, %c] offsets[%r, %s], %tiles[%k], %full[%b] : ..`
    """

    name = "kernel.load_window"

    offsets: Sequence[SSAValue] = fields.indices()

    syntax = (
        "$map `[` $coordinates `]` `offsets` `[` $offsets `]` `,` $target `[` $target_index `]` `,` "
        "$barriers `[` $barrier `]`"
    )
    rules = (
        *_RULES,
        Rule("the map is walked by a window", lambda x: x.map.spatial.data > 0),
        Rule(
            "there is an offset for each spatial dimension",
            lambda x: len(x.offsets) == x.map.spatial.data,
            lambda x: f"{len(x.offsets)} offsets for {x.map.spatial.data} dimensions",
        ),
    )
    cuda = Text(
        "load_window",
        lambda x: f'"{x.T}", {x.map.spatial.data}',
        hint="load",
        operands=("map", "coordinates", "offsets", "target", "target_index", "barriers", "barrier"),
    )

    def __init__(
        self,
        map_: SSAValue,
        coordinates: Sequence[SSAValue],
        offsets: Sequence[SSAValue],
        target: SSAValue,
        target_index: SSAValue,
        barriers: SSAValue,
        barrier: SSAValue,
    ) -> None:
        self.fill(map_, coordinates, target, target_index, barriers, barrier, offsets)

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        from mlirt.dialects.kernel.interpreter_tensor_copies import start_copies, window

        assert isinstance(site.op, LoadWindowOp)
        start_copies(x, site, map_type(site.op.map), window)
