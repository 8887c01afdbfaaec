"""A network that consists of one fused op of another network, and the text that tells such networks apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import StringIO

from xdsl.dialects.builtin import FunctionType, IntegerType, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.io_formats import AS_TYPED
from mlirt.dialects.ir_printer import IrPrinter
from mlirt.dialects.locations import name_of, named
from mlirt.dialects.symbolic import evaluate, sym, symbols
from mlirt.dialects.tensor_types import channels, dims, element_of, halo, is_tensor, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.typical_sizes import name_bounds, name_typical_values, named_bounds, typical, typical_values
from mlirt.dialects.xdsl_compat import module_text
from mlirt.kernels.lib.tactics.registry import TACTIC

Shape = tuple[int, ...]
EDGE = "the edge of a trial"
"""The layer of launches that bring tensors into memory with a border, as the op has them, and out of it."""


def network_of(op: Operation, known: Mapping[str, int]) -> ModuleOp:
    """A function of the operands of `op` that are not constant, and of its results, which stay as they lie.

    Symbols in the types, typically of the `known` sizes, are bound by further inputs: for each a vector of bytes.
    Tensors with a border, which no caller has, are copied from and to ones without: by ops of the layer `EDGE`.
    """
    given = [value for value in dict.fromkeys(op.operands) if not isinstance(value.owner, ConstantOp)]
    names = sorted(_symbols_of(op, known))
    types: list[Attribute] = [_without_border(value.type) for value in given]
    types += [tensor(IntegerType(8), [sym(name)]) for name in names]
    block = Block(arg_types=types)
    mapping: dict[SSAValue, SSAValue] = {}
    for value, arg in zip(given, block.args, strict=False):
        mapping[value] = _edge(block, arg, value.type)
    for value in dict.fromkeys(op.operands):
        if isinstance(value.owner, ConstantOp):
            block.add_op(constant := value.owner.clone())
            mapping[value] = constant.results[0]
    block.add_op(copy := op.clone(value_mapper=mapping))
    copy.attributes.pop(TACTIC, None)
    results = [_edge(block, value, _without_border(value.type)) for value in copy.results]
    block.add_op(ReturnOp(*results))
    function = FuncOp("main", FunctionType.from_lists(types, [value.type for value in results]), Region(block))
    function.attributes[AS_TYPED] = UnitAttr()
    name_typical_values(function, {name: typical(sym(name), known) for name in names})
    bounds = named_bounds(op.parent) if op.parent is not None else {}
    name_bounds(function, {name: bounds[name] for name in names if name in bounds})
    return ModuleOp([function])


def _without_border(type_: Attribute) -> Attribute:
    if not is_tensor(type_) or not halo(type_):
        return type_
    return tensor(element_of(type_), dims(type_), channels(type_))


def _edge(block: Block, value: SSAValue, wanted: Attribute) -> SSAValue:
    """A value as it is wanted, with a border or without."""
    if value.type == wanted:
        return value
    block.add_op(op := ReformatOp(value, wanted))
    op.location = named(EDGE)
    return op.output


def op_of(network: ModuleOp) -> Operation:
    """The op that such a network consists of."""
    (function,) = [op for op in network.body.block.ops if isinstance(op, FuncOp)]
    ops = function.body.block.ops
    (found,) = [op for op in ops if not isinstance(op, ConstantOp | ReturnOp) and not _is_edge(op)]
    return found


def _is_edge(op: Operation) -> bool:
    return isinstance(op, ReformatOp) and name_of(op) == EDGE


def input_shapes(network: ModuleOp) -> list[Shape]:
    """The shapes of the inputs where the symbols have their typical sizes."""
    (function,) = [op for op in network.body.block.ops if isinstance(op, FuncOp)]
    known = typical_values(function.body.block)
    return [tuple(evaluate(dim, known) for dim in dims(arg.type)) for arg in function.body.block.args]


def identity(op: Operation, known: Mapping[str, int]) -> str:
    """A text that equal ops have in common, whatever the values of their constants; with the sizes they run at."""
    network = network_of(op, known)
    block, only = op_of(network).parent, op_of(network)
    assert block is not None
    constants = [one for one in block.ops if isinstance(one, ConstantOp)]
    places = [place for place, value in enumerate(only.operands) if value.owner in constants]
    for constant in constants:
        constant.output.replace_all_uses_with(block.insert_arg(constant.output.type, len(block.args)))
        block.erase_op(constant)
    for inner in only.walk():
        inside = (arg for region in inner.regions for body in region.blocks for arg in body.args)
        for value in (*inner.results, *inside):
            value.name_hint = None
    for arg in block.args:
        arg.name_hint = None
    return f"{module_text(network)}// constants: {places}"


def _symbols_of(op: Operation, known: Mapping[str, int]) -> set[str]:
    """The symbols in the types, and those that the network knows and that the op mentions anywhere."""
    stream = StringIO()
    IrPrinter(stream=stream).print_op(op)
    mentioned = set(re.findall(r"[A-Za-z_]\w*", stream.getvalue())) & set(known)
    return mentioned.union(*(_symbols(value.type) for value in (*op.operands, *op.results)))


def _symbols(type_: Attribute) -> set[str]:
    return {name for dim in dims(type_) for name in symbols(dim)}
