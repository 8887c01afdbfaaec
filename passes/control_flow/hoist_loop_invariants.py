"""Loop-invariant code motion: what is the same in every iteration is computed once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation
from xdsl.traits import Pure

from mlirt.dialects.regions import Terminator
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.require_lengths import RequireLengthsOp
from mlirt.passes.control_flow.region_rewriting import is_outside
from mlirt.passes.rules import Outcome, RulePass, op, rule


@dataclass(frozen=True)
class HoistLoopInvariantsPass(RulePass):
    """Move layers that depend on nothing of a loop in front of it; branches stay lazy.

    Layers that only an iteration may run, as their lengths are checked in it (`trt.require_lengths`), stay there.

    Before:

        %y = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<4xf32>) {
          %e = trt.unary exp %w : (tensor<4xf32>) -> tensor<4xf32>
          %b = trt.elementwise sum %a, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          scf.yield %b : tensor<4xf32>
        }

    After:

        %e = trt.unary exp %w : (tensor<4xf32>) -> tensor<4xf32>
        %y = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<4xf32>) {
          %b = trt.elementwise sum %a, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          scf.yield %b : tensor<4xf32>
        }
    """

    name = "hoist-loop-invariants"
    again = False

    @rule(op((scf.ForOp, scf.WhileOp)).named("loop"))
    def hoist(self, loop: scf.ForOp | scf.WhileOp) -> Outcome:
        return loop if _hoist(loop) else "all layers inside depend on the iteration"


def _hoist(loop: Operation) -> bool:
    """Whether a layer has been moved in front of a loop."""
    has_moved = False
    checked = [
        inner.requirement()
        for region in loop.regions
        for inner in region.block.ops
        if isinstance(inner, RequireLengthsOp)
    ]
    claims = {one.claim for one in checked}
    doubted = {length for one in checked for length in (one.left, one.right)}
    for region in loop.regions:
        for inner in list(region.block.ops):
            stays = _has_lengths(inner, doubted) or _claims(inner, claims)
            if _moves(inner) and not stays and all(is_outside(value, loop) for value in inner.operands):
                inner.detach()
                block = loop.parent
                assert block is not None
                block.insert_op_before(inner, loop)
                has_moved = True
    return has_moved


def _has_lengths(op: Operation, lengths: Collection[Dim]) -> bool:
    tensors = [value for value in op.operands if isinstance(value.type, TensorType)]
    return bool(lengths) and any(dim in lengths for value in tensors for dim in dims(value.type))


def _claims(op: Operation, claims: Collection[object]) -> bool:
    return bool(claims) and isinstance(op, TensorOp) and any(one.claim in claims for one in op.length_requirements())


def _moves(op: Operation) -> bool:
    """Whether an op computes and does nothing else; conversions to numbers stay beside their readers."""
    return op.has_trait(Pure) and not isinstance(op, Terminator) and op.dialect_name() in ("trt", "fused")
