"""What a tactic works with: the target, the memory of each tensor value, and builders of kernels.

A tactic is a file `kernels/<family>/<tactic>.py`, in the folder `cpu` or `cuda` there where it is for one target, with

    OPS = (ConvolutionOp,)          the classes of fused ops that it may take
    TARGETS = {"cpu"}               the kinds of target; `cpu/tiles.py`, which has one, is the tactic `cpu_tiles`
    POOLS = True                    where it also takes ops with the property `pooling`
    ADDS_UP = True                  where it also takes ops with the property `totals`
    PRIORITY = 10                   higher ones are tried first; `generic*.py` has 0 and always applies
    def lower(op, lowering) -> bool: builds kernels and finishes them; False, with nothing built, where it does not
    apply

and, where it has several ways to do it (tile sizes, stages, parts of a sum),

    def estimates(op, lowering) -> Mapping[str, float]: their names, and about how many microseconds the op takes each
    way; none where the tactic does not apply

`lowering.choice` then tells `lower` the way to go: the one that the attribute `fused.tactic = "file:choice"` of the op
names, or else the one of all the family's tactics that costs least.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.dialects.context import RtContext, weights_of
from mlirt.dialects.fused.moves import is_written_through
from mlirt.dialects.fused.slices import is_shown
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.ir_printer import IrPrinter
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.library_op import LibraryOp
from mlirt.dialects.kernel.plugin import PluginOp
from mlirt.dialects.locations import name_of
from mlirt.dialects.plan.expression import Argument
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.regions import inner_blocks
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.symbolic_bounds import is_below
from mlirt.dialects.target import Target
from mlirt.dialects.tensor_types import byte_width, dims, element_count, element_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.typical_sizes import named_bounds
from mlirt.dialects.weights import WeightsAttr
from mlirt.errors import CompileError
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.builder.placement import Pack, Packed, Placements
from mlirt.kernels.lib.tactics.kernel_identity import identity_of
from mlirt.kernels.lib.tactics.recipes import Recipes, Recording, key_of
from mlirt.kernels.lib.tactics.registry import TACTIC, candidates
from mlirt.kernels.lib.tactics.tensor_labels import TensorLabels

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

__all__ = ["KernelBuilder", "Lowering"]


_INT32_LIMIT = 2**31


@dataclass(frozen=True)
class Known:
    """The shape and the bytes of a constant."""

    shape: tuple[int, ...]
    nbytes: int


class Lowering:
    """The lowering of one function. `only` names the one tactic to use, for example `generic`; empty for the best.

    Equal ops are lowered once and repeated with their own tensors, unless it shall not be (`repeats`).
    """

    def __init__(
        self, target: Target, ctx: RtContext, module: ModuleOp, block: Block, only: str = "", *, repeats: bool = True
    ) -> None:
        self.target = target
        self.ctx = ctx
        self.module = module
        self.block = block
        self.only = only
        self.placements = Placements(ctx, block)
        self._labels = TensorLabels()
        self._kernels: dict[str, str] = {}
        self._names: dict[Hashable, str] = {}
        self._choice = ""
        self._recipes: Recipes | None = Recipes() if repeats else None
        # What constants of equal ops became, so that one with many readers is packed once.
        self.repacked: dict[tuple[Hashable, WeightsAttr], WeightsAttr] = {}
        self._readers = _readers(block)
        self._bounds = named_bounds(block)

    def kernel(self, family: str) -> KernelBuilder:
        """A new, empty kernel; nothing of it is in the module before its `finish`."""
        return KernelBuilder(self, family)

    def fits_int32(self, values: Iterable[SSAValue], *counts: Dim) -> bool:
        """Whether 32-bit indices are enough: no buffer of the values has 2**31 bytes, nor are the counts that large,
        for all lengths that profiles allow.
        """
        sizes = [self.placements.size_of(self.placements[value].buffer) for value in values]
        return all(is_below(size, _INT32_LIMIT, self._bounds) for size in (*sizes, *counts))

    def constant_array(self, value: SSAValue) -> Array | None:
        """The elements of a value that is known at build time; only ops with equal ones are lowered alike then."""
        if self.placements.recording is not None and isinstance(value.owner, ConstantOp):
            self.placements.recording.has_read(value)
        return self._elements(value)

    def known(self, value: SSAValue) -> Known | None:
        """What is to be known of a value's elements without reading them; None for a value that a run computes."""
        owner = value.owner
        if not isinstance(owner, ConstantOp):
            return None
        sizes = tuple(size for size in dims(value.type) if isinstance(size, int))
        return Known(sizes, prod(sizes) * byte_width(element_of(value.type)))

    def are_halves(self, value: SSAValue) -> bool:
        """Whether a large constant of float32 has the numbers of halves alone, so that a kernel for the CPU may read it
        as these. Only ops that agree in this are lowered alike.
        """
        constant = value.owner
        if self.target.kind != "cpu" or not isinstance(constant, ConstantOp):
            return False
        return isinstance(constant.value, WeightsAttr) and weights_of(self.ctx).are_halves(constant.value)

    def packed(self, value: SSAValue, pack: Pack, *, as_halves: bool = False) -> Packed:
        """A constant in the order that `pack` brings its elements to; `as_halves` where they shall stay such."""
        owner = value.owner
        assert isinstance(owner, ConstantOp)
        store = weights_of(self.ctx)
        if as_halves:
            assert isinstance(owner.value, WeightsAttr)
            return Packed(value, pack, pack(store.halves(owner.value)), as_halves)
        return Packed(value, pack, pack(owner.array(store)))

    def _elements(self, value: SSAValue) -> Array | None:
        owner = value.owner
        return owner.array(weights_of(self.ctx)) if isinstance(owner, ConstantOp) else None

    def lower(self, op: Operation) -> None:
        """Launch what computes a fused op; raises `CompileError` where no tactic applies."""
        self._lower(op)
        self._let_weights_go(op)

    def _let_weights_go(self, op: Operation) -> None:
        """Give back the arrays that only ops that are lowered have read, and no launch reads as they are."""
        if is_shown(op) or isinstance(op, ViewOp):
            return  # where these lie is asked for when their own readers are lowered
        for attr in _weights_read(op):
            self._readers[attr] -= 1
            if not self._readers[attr] and not self.placements.uses(attr):
                weights_of(self.ctx).let_go([attr.key.data])

    def _lower(self, op: Operation) -> None:
        self.placements.anchor = op
        if op.results and all(element_count(result.type) == 0 for result in op.results):
            return
        if is_shown(op) or is_written_through(op):
            return
        key = None if self._recipes is None else key_of(op, self)
        if self._recipes is None or key is None:
            self._lower_by_tactic(op)
            return
        recipe = self._recipes.find(key, op)
        if recipe is not None:
            recipe.replay(op, self)
            return
        self.placements.recording = recording = Recording(op, self.placements)
        try:
            self._lower_by_tactic(op)
        finally:
            self.placements.recording = None
        self._recipes.keep(key, op, recording)

    def _lower_by_tactic(self, op: Operation) -> None:
        tried = candidates(op, self)
        for candidate in tried:
            self._choice = candidate.choice
            if candidate.tactic.lower(op, self):
                return
        chosen = op.attributes.get(TACTIC)
        which = f"the tactic {chosen.data!r} does not lower" if isinstance(chosen, StringAttr) else "no tactic lowers"
        names = f" (tried {', '.join(dict.fromkeys(one.file for one in tried))})" if tried else ""
        raise CompileError(
            f"layer {name_of(op)}: could not find any implementation: {which} {op.name} to {self.target.kind}{names}"
        )

    def choice(self, op: Operation) -> str:
        """Which of its choices a tactic shall take for the op that is being lowered; empty for one without choices."""
        assert self.placements.anchor is op
        return self._choice

    def launch(
        self,
        function: FuncOp | LibraryOp | PluginOp,
        buffers: Sequence[SSAValue],
        arguments: Sequence[Argument],
        layer: Operation,
        grid: Sequence[Dim] | None,
    ) -> LaunchOp:
        """Put a finished kernel into the module under a name made from its text, and a launch of it before `layer`."""
        op = self.launch_named(self._named(function), buffers, arguments, layer, grid)
        if self.placements.recording is not None:
            self.placements.recording.launch(op, buffers, arguments, grid)
        return op

    def launch_named(
        self,
        name: str,
        buffers: Sequence[SSAValue],
        arguments: Sequence[Argument],
        layer: Operation,
        grid: Sequence[Dim] | None,
    ) -> LaunchOp:
        """Put a launch of a kernel of the module before `layer`."""
        signature = _signature(
            tuple([value.type for value in layer.operands]), tuple([value.type for value in layer.results])
        )
        op = LaunchOp(name, buffers, arguments, grid, signature, self._labels.of_layer(layer))
        op.location = layer.location
        block = layer.parent
        assert block is not None
        block.insert_op_before(op, layer)
        return op

    def _named(self, function: FuncOp | LibraryOp | PluginOp) -> str:
        identity = identity_of(function)
        if identity not in self._names:
            self._names[identity] = self._named_by_text(function)
        return self._names[identity]

    def _named_by_text(self, function: FuncOp | LibraryOp | PluginOp) -> str:
        text = _text(function)
        if text not in self._kernels:
            digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
            self._kernels[text] = name = f"{function.sym_name.data}_{digest}"
            function.properties["sym_name"] = StringAttr(name)
            self.module.body.block.add_op(function)
        return self._kernels[text]


def _readers(block: Block) -> Counter[WeightsAttr]:
    """How often the ops of a function read each array."""
    found: Counter[WeightsAttr] = Counter()
    for inner in (block, *inner_blocks(block)):
        for op in inner.ops:
            found.update(_weights_read(op))
    return found


def _weights_read(op: Operation) -> list[WeightsAttr]:
    owners = [value.owner for value in op.operands]
    return [one.value for one in owners if isinstance(one, ConstantOp) and isinstance(one.value, WeightsAttr)]


@lru_cache(maxsize=1024)
def _signature(operands: tuple[Attribute, ...], results: tuple[Attribute, ...]) -> FunctionType:
    return FunctionType.from_lists(operands, results)


def _text(function: FuncOp | LibraryOp | PluginOp) -> str:
    from io import StringIO

    stream = StringIO()
    IrPrinter(stream=stream).print_op(function)
    return stream.getvalue()
