"""Layers that came with a model: their op is copied, with the settings that were changed since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from mlirt.dialects.property_values import properties_of
from mlirt.dialects.symbol_renaming import rename_symbols
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightsAttr
from mlirt.frontend.network.impossible_branches import refuse_impossible_branches
from mlirt.frontend.network.layer import settings_of
from mlirt.frontend.network.record import LayerRecord

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter


def copied(record: LayerRecord, ir: LayerEmitter) -> Sequence[SSAValue]:
    """The results of a copy of the layer's op, whose types follow from the operands that it has now."""
    template = record.template
    assert template is not None
    copy = template.clone(value_mapper=dict(_operands(template, record, ir)))
    for op in copy.walk():
        if isinstance(op, ConstantOp) and isinstance(op.value, WeightsAttr) and record.store is not None:
            op.value = ir.emission.store.put(record.store.get(op.value), op.value.key.data)
    if ir.emission.renamed:
        rename_symbols(copy, ir.emission.renamed)
        refuse_impossible_branches(copy, ir.emission.store)
    if isinstance(copy, TensorOp):
        copy.properties.update(properties_of(type(copy), _edited(record)))
    ir.append(copy)
    if isinstance(copy, TensorOp):
        copy.check_all()
        for result, type_ in zip(list(copy.results), copy.infer(), strict=True):
            Rewriter.replace_value_with_new_type(result, type_)
    return list(copy.results)


def outer_values(op: Operation) -> list[SSAValue]:
    """What an op reads: its operands, and what its regions read from around them."""
    inside: set[SSAValue] = set()
    for inner in op.walk():
        inside.update(inner.results if inner is not op else ())
        inside.update(argument for region in inner.regions for block in region.blocks for argument in block.args)
    read = [value for inner in op.walk() for value in inner.operands]
    return [value for value in dict.fromkeys([*op.operands, *read]) if value not in inside]


def _operands(template: Operation, record: LayerRecord, ir: LayerEmitter) -> list[tuple[SSAValue, SSAValue]]:
    given = [ir.input(k) for k, tensor in enumerate(record.inputs) if tensor is not None]
    return list(zip(outer_values(template), given, strict=True))


def _edited(record: LayerRecord) -> dict[str, object]:
    found: dict[str, object] = {}
    for setting in settings_of(record.layer_class):
        if setting.name in record.edited and setting.prop is not None:
            found[setting.prop] = setting.to_property(record.settings[setting.name])
    return found
