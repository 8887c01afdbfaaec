"""Other dimensions for symbols, in all types and properties of operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.symbolic import Dim, substitute
from mlirt.dialects.tensor_types import element_of, tensor


def rename_symbols(op: Operation, replaced: Mapping[str, Dim]) -> None:
    """Replace symbols in an operation, its results and all that is inside of it."""
    for inner in op.walk():
        for owned in (inner.properties, inner.attributes):
            for name, attribute in owned.items():
                owned[name] = renamed(attribute, replaced)
        _rename_values(inner.results, replaced)
        for region in inner.regions:
            for block in region.blocks:
                _rename_values(block.args, replaced)


def renamed(attribute: Attribute, replaced: Mapping[str, Dim]) -> Attribute:
    """The attribute with other symbols, if it is a tensor type, a list of dimensions or an array; else itself."""
    if isinstance(attribute, ArrayAttr):
        return ArrayAttr([renamed(entry, replaced) for entry in cast("ArrayAttr[Attribute]", attribute)])
    if isinstance(attribute, DimsAttr):
        return _renamed_dims(attribute, replaced)
    old = _encoding(attribute)
    if old is None:
        return attribute
    encoding = _renamed_dims(old, replaced)
    return tensor(element_of(attribute), encoding.dims(), encoding.channel_count(), encoding.halo_cells())


def _rename_values(values: Sequence[SSAValue], replaced: Mapping[str, Dim]) -> None:
    for value in list(values):
        new = renamed(value.type, replaced)
        if new != value.type:
            Rewriter.replace_value_with_new_type(value, new)


def _encoding(of: Attribute) -> DimsAttr | None:
    return of.encoding if isinstance(of, TensorType) and isinstance(of.encoding, DimsAttr) else None


def _renamed_dims(attribute: DimsAttr, replaced: Mapping[str, Dim]) -> DimsAttr:
    lengths = [substitute(dim, replaced) for dim in attribute.dims()]
    channels = attribute.channel_count()
    return DimsAttr.of(lengths, None if channels is None else substitute(channels, replaced), attribute.halo_cells())
