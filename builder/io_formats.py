"""Which of the formats that are allowed an input or output gets, and what is wrong with those that nothing can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute

from mlirt.dialects.interpreter import entry_function, input_names, output_names
from mlirt.dialects.io_formats import IoFormat, set_formats
from mlirt.dialects.tensor_types import dims, element_name, element_of
from mlirt.errors import InvalidModelError
from mlirt.tensor_formats import LINEAR, check_format

# What layers of a target work on, so that no copy is needed: channels innermost on a GPU.
_LIKED = {"cuda": ("HWC8", "DHWC8", "HWC", "HWC16")}


@dataclass(frozen=True)
class AllowedFormats:
    """The formats that the user permits an input or output; `direct`: and no copy to or from it."""

    names: Sequence[str]
    direct: bool = False


def choose_formats(
    module: ModuleOp, target: str, inputs: Mapping[str, AllowedFormats], outputs: Mapping[str, AllowedFormats]
) -> None:
    """Let a network carry a format for each of these inputs and outputs: linear where that is allowed (feature 5.1).

    Raises `InvalidModelError`, naming the tensor, where none of its formats is for its element type and shape.
    """
    function = entry_function(module)
    last = function.body.block.last_op
    assert isinstance(last, ReturnOp)
    read = dict(zip(input_names(function), (value.type for value in function.body.block.args), strict=True))
    made = dict(zip(output_names(function), (value.type for value in last.operands), strict=True))
    chosen = [
        {name: IoFormat(_chosen(name, types[name], allowed, target), allowed.direct) for name, allowed in given.items()}
        for given, types in ((inputs, read), (outputs, made))
    ]
    set_formats(module, *chosen)


def _chosen(name: str, of: Attribute, allowed: AllowedFormats, target: str) -> str:
    if not allowed.names:
        raise InvalidModelError(f"{name}: no format is allowed")
    liked = _LIKED.get(target, ())
    ordered = sorted(allowed.names, key=lambda one: (one != LINEAR, one not in liked))
    for format in ordered:
        try:
            check_format(name, format, element_name(element_of(of)), dims(of))
        except InvalidModelError:
            continue
        return format
    check_format(name, ordered[0], element_name(element_of(of)), dims(of))
    raise AssertionError("the first format was refused")
