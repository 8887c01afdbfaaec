"""Hoists broadcasts in front of the layers that compute their input, as far as that pays."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_types import dims, with_dims
from mlirt.dialects.trt.broadcast import BroadcastOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.passes.cleanup.length_equations import symbol_of
from mlirt.passes.cleanup.repeated_axes import Place, repeated_axes, set_length
from mlirt.passes.cleanup.rewriting import insert_before

_PRODUCTS = (MatrixMultiplyOp, ConvolutionOp, DeconvolutionOp, FullyConnectedOp)


class HoistBroadcastsPass(ModulePass):
    """Move a `trt.broadcast` in front of the layer that computes its input, where all readers of that are broadcasts.

    At an input of the network it costs little, and layers that it has passed fuse with those behind it: an attention
    stays one launch where its mask has a batch of another name. Where lengths differ in a run the layers compute some
    rows several times, so that it passes no more products than come behind it. Lengths that only the data of a run
    tell are not known earlier: their broadcasts stay.

    Before:

        %a = trt.activation relu %x : ...
        %b = trt.broadcast %a {size = #trt.dims<["broadcast(m, n)"]>} : ...

    After:

        %a = trt.broadcast %x {size = #trt.dims<["broadcast(m, n)"]>} : ...
        %b = trt.activation relu %a : ...
    """

    name = "hoist-broadcasts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks:
                _hoist(function.body.block)


def _hoist(block: Block) -> None:
    known = {symbol_of(dim) for value in block.args for dim in dims(value.type)}
    for op in reversed(list(block.ops)):
        if len(op.results) != 1:
            continue
        size = _wanted(op.results[0])
        if size is None or not all(symbols(dim) <= known for dim in size):
            continue
        if isinstance(op, BroadcastOp):
            op.properties["size"] = DimsAttr.of(size)
            _take_over(op, size)
            continue
        places = _passed(op, size)
        if places is not None and _pays(op):
            _pass(op, size, places)


def _wanted(value: SSAValue) -> tuple[Dim, ...] | None:
    """The dimensions that all readers of a value give it; None where one reads it as it is, or elsewhere."""
    sizes: set[tuple[Dim, ...]] = set()
    owner = value.owner
    for use in value.uses:
        if not isinstance(use.operation, BroadcastOp) or not isinstance(owner, Operation):
            return None
        if use.operation.parent is not owner.parent:
            return None
        sizes.add(use.operation.size.dims())
    return sizes.pop() if len(sizes) == 1 else None


def _passed(op: Operation, size: tuple[Dim, ...]) -> dict[int, dict[int, Dim]] | None:
    """The lengths that axes of operands get instead, by operand; None where the layer cannot be passed."""
    found: dict[int, dict[int, Dim]] = {}
    for axis, (own, wanted) in enumerate(zip(dims(op.results[0].type), size, strict=True)):
        places: list[Place] | None = [] if own == wanted else repeated_axes(op, axis)
        if places is None:
            return None
        for position, place in places:
            found.setdefault(position, {})[place] = wanted
    return found or None


def _pass(op: Operation, size: tuple[Dim, ...], places: dict[int, dict[int, Dim]]) -> None:
    (broadcast, *_) = [use.operation for use in op.results[0].uses]
    for position, lengths in places.items():
        value = op.operands[position]
        wanted = [lengths.get(axis, own) for axis, own in enumerate(dims(value.type))]
        op.operands[position] = insert_before(op, BroadcastOp.of(value, wanted), broadcast.location)
    set_length(op, size)
    _take_over(op, size)


def _take_over(op: Operation, size: tuple[Dim, ...]) -> None:
    """Let a layer whose result has become longer stand for the broadcasts of it."""
    readers = [use.operation for use in op.results[0].uses]
    Rewriter.replace_value_with_new_type(op.results[0], with_dims(op.results[0].type, size))
    for reader in dict.fromkeys(readers):
        reader.results[0].replace_all_uses_with(op.results[0])
        reader.detach()
        reader.erase()


def _pays(op: Operation) -> bool:
    """Whether no more products are computed again for repeated operands than are computed for them anyway."""
    behind = _reached([op], lambda one: (use.operation for result in one.results for use in result.uses))
    before = _reached([op], lambda one: (value.owner for value in one.operands if isinstance(value.owner, Operation)))
    return _products(before) <= _products(behind - {op})


def _products(ops: Iterable[Operation]) -> int:
    return sum(isinstance(op, _PRODUCTS) for op in ops)


def _reached(start: list[Operation], step: Callable[[Operation], Iterable[Operation]]) -> set[Operation]:
    found, waiting = set(start), list(start)
    while waiting:
        for op in step(waiting.pop()):
            if op not in found:
                found.add(op)
                waiting.append(op)
    return found
