"""Which of the formats that are allowed an input or output gets, and what is wrong with those that nothing can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute

from mlirt.builder.io_types import change_types
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function, input_names, output_names
from mlirt.dialects.io_formats import IoFormat, set_formats
from mlirt.dialects.tensor_types import dims, element_name, element_of
from mlirt.errors import InvalidInputError, InvalidModelError
from mlirt.tensor_formats import FORMATS, LINEAR, check_format

# What layers of a target work on, so that no copy is needed: channels innermost on a GPU.
_LIKED = {"cuda": ("HWC8", "DHWC8", "HWC", "HWC16")}


@dataclass(frozen=True)
class AllowedFormats:
    """The formats that the user permits an input or output; `direct`: and no copy to or from it."""

    names: Sequence[str]
    direct: bool = False


@dataclass(frozen=True)
class IoType:
    """What is asked of an input or output as text, `fp16:chw+hwc8`: an element type and formats
    (tensorrt-features.md#30.2).
    """

    dtype: str
    formats: tuple[str, ...]


_TYPES = {"fp32": "float32", "fp16": "float16", "int32": "int32", "int8": "int8"}
_FORMATS = {"chw" if name == LINEAR else name.lower(): name for name in FORMATS}


def read_io_type(text: str) -> IoType:
    """`fp16:chw+hwc8` with trtexec's names; raises `InvalidInputError` for what is none."""
    dtype, _, formats = text.partition(":")
    names = formats.split("+")
    if dtype not in _TYPES or not all(name in _FORMATS for name in names):
        raise InvalidInputError(
            f"{text!r}: expected TYPE:FORMAT+FORMAT, types {', '.join(_TYPES)}, formats {', '.join(_FORMATS)}"
        )
    return IoType(_TYPES[dtype], tuple(_FORMATS[name] for name in names))


def give_types(
    module: ModuleOp, ctx: RtContext, target: str, inputs: Sequence[str], outputs: Sequence[str], *, direct: bool
) -> None:
    """Let a network that is just imported, and has its ranges, have inputs and outputs of these types and formats.

    One text is for all of them, several are for one each; none leaves types as they are, and all linear.
    """
    function = entry_function(module)
    wanted = (_for_each("inputs", inputs, input_names(function)), _for_each("outputs", outputs, output_names(function)))
    change_types(module, ctx, *({name: one.dtype for name, one in types.items()} for types in wanted))
    allowed = [{name: AllowedFormats(one.formats, direct) for name, one in types.items()} for types in wanted]
    if direct:
        for names, own in zip((input_names(function), output_names(function)), allowed, strict=True):
            own.update({name: AllowedFormats([LINEAR], direct) for name in names if name not in own})
    choose_formats(module, target, *allowed)


def _for_each(kind: str, texts: Sequence[str], names: Sequence[str]) -> dict[str, IoType]:
    if len(texts) not in (0, 1, len(names)):
        raise InvalidInputError(f"{len(texts)} types and formats for {len(names)} {kind}: {', '.join(names)}")
    types = [read_io_type(text) for text in texts] * (len(names) if len(texts) == 1 else 1)
    return dict(zip(names, types, strict=False))


def choose_formats(
    module: ModuleOp, target: str, inputs: Mapping[str, AllowedFormats], outputs: Mapping[str, AllowedFormats]
) -> None:
    """Let a network carry a format for each of these inputs and outputs: linear where that is allowed
    (tensorrt-features.md#5.1).

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
