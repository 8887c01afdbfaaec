"""What the user asks single layers to compute in: looked up by name, so that it survives whatever passes make of them.

A module carries `trt.layer_precisions = {"conv1" = "fp32", ..}`, an op may have `trt.precision = "fp32"` of its own. An
op stands for all layers that its location names; where they are asked for different formats, the widest counts. With
`trt.obey_precisions` on the module what cannot be had is an error, else a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Operation

from mlirt.dialects.locations import names
from mlirt.errors import InvalidInputError

LAYER_PRECISIONS = "trt.layer_precisions"
PRECISION = "trt.precision"
OBEYED = "trt.obey_precisions"


class Precision(IntEnum):
    """The formats that a layer may be asked for, from the narrowest to the widest."""

    INT8 = 0
    FP16 = 1
    BF16 = 2
    TF32 = 3
    FP32 = 4

    @property
    def text(self) -> str:
        """How attributes spell it."""
        return self.name.lower()


WIDE = (Precision.FP32, Precision.TF32)
HALVES = (Precision.FP16, Precision.BF16)


class LayerPrecisions:
    """What the layers of a module are asked to compute in."""

    def __init__(self, module: ModuleOp) -> None:
        asked = module.attributes.get(LAYER_PRECISIONS)
        found = dict(asked.data) if isinstance(asked, DictionaryAttr) else {}
        texts = {name: value.data for name, value in found.items() if isinstance(value, StringAttr)}
        self._by_name = {name: precision_of(text) for name, text in texts.items()}

    def of(self, op: Operation) -> Precision | None:
        """The format that an op is asked for; None where nobody asks."""
        own = op.attributes.get(PRECISION)
        asked = [self._by_name[name] for name in names(op.location) if name in self._by_name]
        if isinstance(own, StringAttr):
            asked.append(precision_of(own.data))
        return max(asked, default=None)


def set_layer_precisions(module: ModuleOp, asked: Mapping[str, str]) -> None:
    """Let a module carry formats by layer name."""
    if asked:
        module.attributes[LAYER_PRECISIONS] = DictionaryAttr({name: StringAttr(text) for name, text in asked.items()})


def drop_layer_precisions(module: ModuleOp) -> None:
    """Clear the precision constraints of all layers of a module."""
    for name in (LAYER_PRECISIONS, OBEYED):
        module.attributes.pop(name, None)
    for op in module.walk():
        op.attributes.pop(PRECISION, None)


def precision_of(text: str) -> Precision:
    """The format of a name; raises `InvalidInputError` for one that is not known."""
    if text.upper() not in Precision.__members__:
        known = ", ".join(one.text for one in Precision)
        raise InvalidInputError(f"a layer cannot be asked to compute in {text!r}; expected one of {known}")
    return Precision[text.upper()]
