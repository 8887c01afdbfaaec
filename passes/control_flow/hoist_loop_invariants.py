"""Loop-invariant code motion: what is the same in every iteration is computed once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from mlirt.dialects.regions import Terminator
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.require_lengths import RequireLengthsOp
from mlirt.passes.control_flow.region_rewriting import control_ops, is_outside


@dataclass(frozen=True)
class HoistLoopInvariantsPass(ModulePass):
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in control_ops(op):
            if isinstance(loop, scf.ForOp | scf.WhileOp):
                _hoist(loop)


def _hoist(loop: Operation) -> None:
    checked = [
        op.requirement() for region in loop.regions for op in region.block.ops if isinstance(op, RequireLengthsOp)
    ]
    claims = {one.claim for one in checked}
    doubted = {length for one in checked for length in (one.left, one.right)}
    for region in loop.regions:
        for op in list(region.block.ops):
            stays = _has_lengths(op, doubted) or _claims(op, claims)
            if _moves(op) and not stays and all(is_outside(value, loop) for value in op.operands):
                op.detach()
                block = loop.parent
                assert block is not None
                block.insert_op_before(op, loop)


def _has_lengths(op: Operation, lengths: Collection[Dim]) -> bool:
    tensors = [value for value in op.operands if isinstance(value.type, TensorType)]
    return bool(lengths) and any(dim in lengths for value in tensors for dim in dims(value.type))


def _claims(op: Operation, claims: Collection[object]) -> bool:
    return bool(claims) and isinstance(op, TensorOp) and any(one.claim in claims for one in op.length_requirements())


def _moves(op: Operation) -> bool:
    """Whether an op computes and does nothing else; conversions to numbers stay beside their readers."""
    return op.has_trait(Pure) and not isinstance(op, Terminator) and op.dialect_name() in ("trt", "fused")
