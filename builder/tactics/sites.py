"""The fused ops of a network that can be lowered in more than one way, equal ones together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from mlirt.builder.tactics.network_of_one_op import identity
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.joining import JoiningOp
from mlirt.dialects.fused.moves import is_written_through
from mlirt.dialects.fused.slices import is_shown
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.target import Target
from mlirt.dialects.typical_sizes import typical_values
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tactics.registry import TACTIC, Candidate, candidates


@dataclass(frozen=True)
class Site:
    """Ops that are equal but for the values of their constants, the ways to lower them, and what tells them apart.

    Nothing is launched for `free` ones: their results lie in what they read, or were written there.
    """

    text: str
    ops: tuple[Operation, ...]
    candidates: tuple[Candidate, ...]
    free: bool = False


def find_sites(module: ModuleOp, ctx: RtContext, target: Target, fewest: int = 2) -> list[Site]:
    """The sites of a network after the phase `layout` with so many ways at least, in its order; ops that name their
    tactic are left out.
    """
    ops: dict[tuple[str, bool], list[Operation]] = {}
    ways: dict[tuple[str, bool], tuple[Candidate, ...]] = {}
    for function, copy in _functions(module):
        originals = list(function.ops)
        lowering = Lowering(target, ctx, copy.module, copy.block)
        for op, twin in zip(originals, copy.ops, strict=True):
            if not isinstance(op, FusedOp) or TACTIC in op.attributes:
                continue
            text = f"{identity(op, typical_values(function))}; memory: {_memory(twin, lowering)}"
            key = text, _is_free(twin, lowering)
            if key not in ways:
                lowering.placements.anchor = twin
                ways[key] = tuple(candidates(twin, lowering))
            ops.setdefault(key, []).append(op)
    return [Site(key[0], tuple(ops[key]), ways[key], key[1]) for key in ops if len(ways[key]) >= fewest]


@dataclass(frozen=True)
class _Copy:
    """A function of a copy of the module: looking for candidates places tensors, which adds ops."""

    module: ModuleOp
    block: Block
    ops: tuple[Operation, ...]


def _functions(module: ModuleOp) -> Iterator[tuple[Block, _Copy]]:
    copy = module.clone()
    for one, other in zip(module.body.block.ops, copy.body.block.ops, strict=True):
        if isinstance(one, FuncOp) and isinstance(other, FuncOp) and not one.is_declaration:
            yield one.body.block, _Copy(copy, other.body.block, tuple(other.body.block.ops))


def _is_free(op: Operation, lowering: Lowering) -> bool:
    if isinstance(op, ViewOp):
        return lowering.placements.shown(op) is not None
    if isinstance(op, JoiningOp):
        return all(lowering.placements.writes_into(op, position) for position in range(len(op.inputs)))
    return is_shown(op) or is_written_through(op)


def _memory(op: Operation, lowering: Lowering) -> str:
    """How the operands and results lie in memory, as far as the network around the op decides it."""
    places = [lowering.placements[value] for value in (*op.operands, *op.results)]
    return "; ".join(f"{place.offset}: {', '.join(map(str, place.strides))}" for place in places)
