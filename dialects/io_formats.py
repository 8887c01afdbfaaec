"""The formats in which a network's inputs and outputs lie in the memory of the caller.

An argument or a result of `main` carries `trt.format = "HWC8"`; without it a tensor is linear. With `trt.direct` no
copy may stand between it and the layers. `convert-io-formats` gives it the type that lies so, and keeps the shape that
callers know as `trt.logical`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from mlirt.dialects.blocked_layout import blocked
from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.interpreter import entry_function, input_names, output_names
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import Tensor, dims, element_of, tensor
from mlirt.tensor_formats import LINEAR, layout_of

FORMAT = "trt.format"
AS_TYPED = "trt.results_as_typed"
"""The attribute of a function whose results stay in the order of their types: nothing makes them dense for a caller."""
DIRECT = "trt.direct"
LOGICAL = "trt.logical"


@dataclass(frozen=True)
class IoFormat:
    """The format of an input or output; `logical` is its shape as callers know it, once its type has become another."""

    name: str = LINEAR
    direct: bool = False
    logical: tuple[Dim, ...] | None = None


def set_formats(module: ModuleOp, inputs: Mapping[str, IoFormat], outputs: Mapping[str, IoFormat]) -> None:
    """Let a network carry the formats of its inputs and outputs, by name."""
    function = entry_function(module)
    _set(function, "arg_attrs", input_names(function), inputs)
    _set(function, "res_attrs", output_names(function), outputs)


def _set(function: FuncOp, key: str, names: Sequence[str], formats: Mapping[str, IoFormat]) -> None:
    if formats:
        entries = zip(names, _entries(function, key, len(names)), strict=True)
        function.properties[key] = ArrayAttr(
            with_format(entry, formats.get(name, IoFormat())) for name, entry in entries
        )


def with_format(entry: DictionaryAttr, format: IoFormat) -> DictionaryAttr:
    """The attributes of an input or output with its format among them."""
    found: dict[str, Attribute] = dict(entry.data)
    if format.name != LINEAR:
        found[FORMAT] = StringAttr(format.name)
    if format.direct:
        found[DIRECT] = UnitAttr()
    if format.logical is not None:
        found[LOGICAL] = DimsAttr.of(format.logical)
    return DictionaryAttr(found)


def input_formats(function: FuncOp) -> list[IoFormat]:
    return _formats(_entries(function, "arg_attrs", len(function.body.block.args)))


def output_formats(function: FuncOp) -> list[IoFormat]:
    return _formats(_entries(function, "res_attrs", len(function.function_type.outputs)))


def _entries(function: FuncOp, key: str, count: int) -> list[DictionaryAttr]:
    given = function.arg_attrs if key == "arg_attrs" else function.res_attrs
    return [DictionaryAttr({})] * count if given is None else list(given)


def _formats(entries: Sequence[DictionaryAttr]) -> list[IoFormat]:
    found: list[IoFormat] = []
    for entry in entries:
        name, logical = entry.data.get(FORMAT), entry.data.get(LOGICAL)
        found.append(
            IoFormat(
                name.data if isinstance(name, StringAttr) else LINEAR,
                DIRECT in entry.data,
                logical.dims() if isinstance(logical, DimsAttr) else None,
            )
        )
    return found


def image_dims(of: Attribute, format: str) -> tuple[Dim, ...]:
    """The dimensions under which a tensor is an image `[n, c, h, w]` whose channels are those of a format."""
    layout, sizes = layout_of(format), dims(of)
    assert layout is not None
    axis = layout.axis(len(sizes))
    behind = sizes[axis + 1 :]
    return (product(sizes[:axis]), sizes[axis], product(behind[:-1]), behind[-1])


def stored_type(of: Attribute, format: str) -> Tensor:
    """The type of a tensor that lies in a format: of the same dimensions where its channels are the last in memory,
    else an image in blocks of channels.
    """
    layout, sizes = layout_of(format), dims(of)
    assert layout is not None
    if not layout.channels_last:
        return blocked(tensor(element_of(of), image_dims(of, format)), layout.lanes)
    axis = layout.axis(len(sizes))
    order = [*(k for k in range(len(sizes)) if k != axis), axis]
    row = layout.stored_shape(sizes)[-1]
    return tensor(element_of(of), sizes, order=order, row=row if row != sizes[axis] and isinstance(row, int) else 0)
