"""Every value is defined before it is used: xDSL does not check this, and most broken passes break it."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.traits import IsolatedFromAbove

from mlirt.dialects.diagnostics import VerificationError


def verify_dominance(module: Operation) -> None:
    """Raise the first `VerificationError` of a use that its definition does not dominate."""
    for error in dominance_errors(module):
        raise error


def dominance_errors(module: Operation) -> Iterator[VerificationError]:
    """Every op that uses a value which does not exist yet, or not on all paths to it."""
    for region in module.regions:
        yield from _region_errors(region, set())


def _region_errors(region: Region, visible: set[SSAValue]) -> Iterator[VerificationError]:
    first = region.first_block
    if first is None:
        return
    if first is region.last_block:
        yield from _block_errors(first, visible)
        return
    # Several blocks: a block sees what is around the region and what the blocks that dominate it define.
    dominance = DominanceInfo(region)
    blocks = list(region.blocks)
    for block in blocks:
        above = [other for other in blocks if other is not block and dominance.dominates(other, block)]
        yield from _block_errors(block, visible.union(*map(_defined_in, above)))


def _defined_in(block: Block) -> set[SSAValue]:
    return {*block.args, *(result for op in block.ops for result in op.results)}


def _block_errors(block: Block, visible: set[SSAValue]) -> Iterator[VerificationError]:
    """One walk in order; `visible` grows with the block's own values and shrinks back at its end."""
    own: list[SSAValue] = [value for value in block.args if value not in visible]
    visible.update(own)
    for op in block.ops:
        for index, operand in enumerate(op.operands):
            if operand not in visible:
                name = f" (%{operand.name_hint})" if operand.name_hint else ""
                yield VerificationError(op, f"operand #{index}{name} does not dominate this use")
        for region in op.regions:
            yield from _region_errors(region, set() if op.has_trait(IsolatedFromAbove) else visible)
        visible.update(op.results)
        own.extend(op.results)
    visible.difference_update(own)
