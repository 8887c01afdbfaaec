"""Widens a network that stores numbers in half precision, and keeps in mind which of them it stored so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, bf16, f16, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from mlirt.dialects.context import weights_of
from mlirt.dialects.locations import name_of, names
from mlirt.dialects.tensor_names import name_of_hint
from mlirt.dialects.tensor_types import element_name, element_of, is_tensor, with_element
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.plugin import PluginOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.errors import UnsupportedError

_HANDED_ON = (IdentityOp, ShuffleOp, SliceOp, SelectOp)


@dataclass(frozen=True)
class HalfValue:
    """A tensor that is stored in half precision: the layer that makes it, and the layers that a remedy concerns.

    `masks` says that its numbers end in nothing but softmaxes, for which one far below the others is as good as minus
    infinity. `is_own` says that the network itself has it in this type.
    """

    layer: str
    tensor: str
    dtype: str
    layers: tuple[str, ...]
    masks: bool
    is_own: bool


def own_halves(module: ModuleOp) -> set[str]:
    """The names of layers whose results are in half precision in the network itself."""
    return {name_of(op) for op in module.walk() for result in op.results if _is_half(result)}


def widened(module: ModuleOp, ctx: Context, own: set[str]) -> dict[SSAValue, HalfValue]:
    """Give every tensor in half precision float32; those that were in it, by their new value.

    Constants keep the numbers to which half precision rounds them. Raises `UnsupportedError` where a plugin asks for
    half precision.
    """
    found = {value: _described(value, own) for value in _halves(module) if not isinstance(value.owner, ConstantOp)}
    new = {value: _widen(value, ctx) for value in list(_halves(module))}
    for op in module.ops:
        if isinstance(op, FuncOp):
            _give_types(op)
    return {new[value]: one for value, one in found.items()}


def _halves(module: ModuleOp) -> Iterator[SSAValue]:
    for op in module.walk():
        if isinstance(op, PluginOp) and any(_is_half(value) for value in (*op.operands, *op.results)):
            raise UnsupportedError(f"{name_of(op)}: a plugin that takes half precision cannot be run in float32")
        for region in op.regions:
            for block in region.blocks:
                yield from filter(_is_half, block.args)
        yield from filter(_is_half, op.results)


def _is_half(value: SSAValue) -> bool:
    return is_tensor(value.type) and element_of(value.type) in (f16, bf16)


def _described(value: SSAValue, own: set[str]) -> HalfValue:
    maker = None if isinstance(value, BlockArgument) else value.owner
    readers = [use.operation for use in value.uses if not isinstance(use.operation, ReturnOp)]
    name = name_of(maker) if isinstance(maker, Operation) else "an input"
    concerned = [*([maker] if isinstance(maker, Operation) else []), *readers]
    layers = tuple(dict.fromkeys(part for op in concerned for part in names(op.location)))
    hint = value.name_hint
    source = maker.input if isinstance(maker, IdentityOp) and hint is None else value
    tensor = name_of_hint(source.name_hint) if source.name_hint else ""
    return HalfValue(name, tensor, element_name(element_of(value.type)), layers, _only_masks(value), name in own)


def _only_masks(value: SSAValue, depth: int = 8) -> bool:
    """Whether all readers are softmaxes, sums in front of them, or layers that hand the numbers on."""
    readers = [use.operation for use in value.uses]
    return bool(readers) and all(isinstance(op, SoftmaxOp) or (depth > 0 and _adds(op, depth)) for op in readers)


def _adds(op: Operation, depth: int) -> bool:
    is_sum = isinstance(op, ElementwiseOp) and op.kind.data is ElementwiseKind.SUM
    return (is_sum or isinstance(op, _HANDED_ON)) and _only_masks(op.results[0], depth - 1)


def _widen(value: SSAValue, ctx: Context) -> SSAValue:
    owner = value.owner
    if not isinstance(owner, ConstantOp):
        return Rewriter.replace_value_with_new_type(value, with_element(value.type, f32))
    array = owner.array(weights_of(ctx)).astype("float32")
    constant = ConstantOp.from_array(array, weights_of(ctx), name_of(owner), owner.location)
    Rewriter.replace_op(owner, constant)
    return constant.output


def _give_types(function: FuncOp) -> None:
    last = function.body.block.last_op
    results = [value.type for value in last.operands] if isinstance(last, ReturnOp) else []
    function.function_type = FunctionType.from_lists([one.type for one in function.body.block.args], results)
