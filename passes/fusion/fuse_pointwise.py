"""Fuses chains of pointwise ops."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.fused.access import AccessAttr, is_elementwise, repeated_lengths
from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp
from mlirt.dialects.fused.fused_op import is_identity
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.symbolic import coefficient_of
from mlirt.dialects.tensor_types import byte_width, dims, element_of
from mlirt.passes.fusion.access_composition import keeps_rows, repeats
from mlirt.passes.fusion.epilogues import producer_of
from mlirt.passes.fusion.pointwise_absorption import Consumer, absorb, iteration_space, share_operands
from mlirt.passes.fusion.scalar_bodies import size, tidy, work
from mlirt.passes.options import option
from mlirt.passes.remarks import applied, declined

_CONTRACTIONS = (ConvolutionOp, MatmulOp, PackedMatmulOp)

# A result that several readers want is computed again in each of them up to this many instructions.
_CHEAP = 4


@dataclass(frozen=True)
class FusePointwisePass(ModulePass):
    """Compute a pointwise op inside of its readers; accesses compose, so transposes and slices disappear too.

    A reader is a pointwise op, or with `into-reductions` a reduction. A result that is read more than once per element
    is fused only where computing it again is cheap, all readers can take it, and no convolution, product or reduction
    before it can, where it costs nothing and stores no wider elements; an op with at most `max-operands` operands and
    `max-ops` scalar ops comes out. What can end a convolution or product so that this stores narrower elements, such as
    bytes instead of 32-bit sums, is left to it, and so is what only a copy to other places reads. An operand that a run
    may repeat is copied where the reader can end a convolution or product.

    Before:

        %a = fused.pointwise %x ["d0", "d1"] { exp } : tensor<4x8xf32>
        %y = fused.pointwise %a ["d1", "d0"] { neg } : tensor<8x4xf32>

    After:

        %y = fused.pointwise %x ["d1", "d0"] { neg(exp) } : tensor<8x4xf32>
    """

    name = "fuse-pointwise"

    max_operands: int = option(12, at_least=1)
    max_ops: int = option(96, at_least=1)
    into_reductions: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kinds = (PointwiseOp, ReductionOp) if self.into_reductions else (PointwiseOp,)
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, kinds):
                    self._absorb_producers(inner)

    def _absorb_producers(self, consumer: Consumer) -> None:
        refused: set[Operation] = set()
        while True:
            producers = dict.fromkeys(value.owner for value in consumer.inputs)
            chosen = next((one for one in producers if one not in refused and self._fuses(one, consumer)), None)
            if chosen is None:
                break
            assert isinstance(chosen, PointwiseOp)
            if not self._fits(chosen, consumer):
                refused.add(chosen)
                declined(consumer, "with {} it would have more than max-operands operands or max-ops ops", chosen)
                continue
            absorb(chosen, consumer)
            applied(consumer)
        share_operands(consumer)
        tidy(consumer.body.block)

    def _fits(self, producer: PointwiseOp, consumer: Consumer) -> bool:
        reads = sum(value.owner is producer for value in consumer.inputs)
        operands = len(consumer.inputs) + reads * (len(producer.inputs) - 1)
        return operands <= self.max_operands and size(consumer.body) + reads * size(producer.body) <= self.max_ops

    def _fuses(self, producer: Operation | Block, consumer: Consumer) -> bool:
        """Whether computing the producer inside of the consumer is legal and pays."""
        if (
            not isinstance(producer, PointwiseOp)
            or len(producer.outputs) != 1
            or producer.parent is not consumer.parent
        ):
            return False
        left = _ends_a_wider_sum(producer) or (_may_repeat(producer) and _is_epilogue(consumer))
        if left or (_only_moves(consumer) and _ends_as_narrow(producer)):
            declined(consumer, "{} is left to the convolution or product before it", producer)
            return False
        cost = work(producer.body)
        if _computes_again(producer, consumer, cost):
            declined(consumer, "{} would be computed several times per element", producer)
            return False
        users = {use.operation for use in producer.outputs[0].uses}
        if users == {consumer} or self._pays_again(producer, users, cost):
            return True
        declined(consumer, "{} has several readers, and computing it in each does not pay", producer)
        return False

    def _pays_again(self, producer: PointwiseOp, users: set[Operation], cost: int) -> bool:
        """Whether all of several readers should compute the producer on their own."""
        readers = [user for user in users if _reads_as_input(user, producer.outputs[0])]
        if cost > _CHEAP or len(readers) < len(users) or (cost > 0 and _ends_as_narrow(producer)):
            return False
        if any(isinstance(user, Consumer) and _computes_again(producer, user, cost) for user in readers):
            return False
        if not self.into_reductions and any(isinstance(user, ReductionOp) for user in users):
            return False
        if is_identity(producer.body):
            return all(map(keeps_rows, producer.access))
        space = dims(producer.outputs[0].type)
        return sum(not repeats(access, space) for access in producer.access) <= 1


def _computes_again(producer: PointwiseOp, consumer: Consumer, cost: int) -> bool:
    """Whether the consumer would compute the producer several times for an element, where that does not pay."""
    space = iteration_space(consumer)
    accesses = {
        access for value, access in zip(consumer.inputs, consumer.access, strict=True) if value.owner is producer
    }
    again = len(accesses) > 1 or any(repeats(access, space) for access in accesses)
    return again and (cost > _CHEAP or (cost > 0 and _is_epilogue(producer)))


def _is_epilogue(op: Consumer) -> bool:
    """Whether the op can end the convolution, product or reduction before it, where it costs nothing."""
    return isinstance(op, PointwiseOp) and any(producer_of(op, value) is not None for value in op.inputs)


def _ends_as_narrow(op: PointwiseOp) -> bool:
    """Whether the op can end what accumulates before it, which stores no wider elements then."""
    width = byte_width(element_of(op.outputs[0].type))
    made = [value for value in op.inputs if producer_of(op, value) is not None]
    return any(byte_width(element_of(value.type)) >= width for value in made)


def _only_moves(op: Consumer) -> bool:
    """Whether the op copies what it reads to other places, which ends no convolution or product."""
    if not isinstance(op, PointwiseOp) or not is_identity(op.body):
        return False
    return not is_elementwise(op.access.data[0], dims(op.outputs[0].type))


def _may_repeat(op: PointwiseOp) -> bool:
    """Whether only a run knows if the op reads an element of an operand several times: no epilogue reads so."""
    rank = len(dims(op.outputs[0].type))
    return any([_may_read_again(access, rank) for access in op.access])


@lru_cache(maxsize=4096)
def _may_read_again(access: AccessAttr, rank: int) -> bool:
    indices = [index for index in access.indices() if not isinstance(index, int)]
    return any(repeated_lengths(coefficient_of(index, f"d{axis}")) for index in indices for axis in range(rank))


def _ends_a_wider_sum(op: PointwiseOp) -> bool:
    """Whether a convolution or product that ends with the op stores less: bytes, say, instead of 32-bit sums."""
    width = byte_width(element_of(op.outputs[0].type))
    made = [value for value in op.inputs if producer_of(op, value) is not None]
    return any(isinstance(value.owner, _CONTRACTIONS) and width < byte_width(element_of(value.type)) for value in made)


def _reads_as_input(user: Operation, value: SSAValue) -> bool:
    if isinstance(user, ReductionOp):
        return value not in user.extras
    return isinstance(user, PointwiseOp)
