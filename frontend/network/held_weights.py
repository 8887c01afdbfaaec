"""Which layers of a model hold their weights, as those of TensorRT's parser do, and which read them as tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import f16, f32
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.tensor_names import name_of_hint
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.weights import WeightStore
from mlirt.frontend.network.layer import settings_of
from mlirt.frontend.network.layer_classes import layer_class_of
from mlirt.tensorrt.dims import Dims

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

KernelOp: TypeAlias = ConvolutionOp | DeconvolutionOp


def holds_weights(op: Operation) -> bool:
    """Whether a layer of TensorRT's can be the op, with constant weights of the type of its input."""
    if not isinstance(op, KernelOp):
        return False
    weights = [value for value in (op.kernel, op.bias) if value is not None]
    element = element_of(op.input.type)
    if element not in (f16, f32) or any(element_of(value.type) != element for value in weights):
        return False
    is_plain = all(isinstance(value.owner, ConstantOp) and math.prod(_lengths(value)) > 0 for value in weights)
    return is_plain and _has_words(op)


def is_held(op: Operation) -> bool:
    """Whether an op is a constant that layers hold, and nothing else reads; those in branches and loops hold none."""
    if not isinstance(op, ConstantOp):
        return False
    uses = list(op.output.uses)
    readers = [use.operation for use in uses]
    is_whole = all(reader.parent is op.parent and holds_weights(reader) for reader in readers)
    return bool(uses) and is_whole and all(use.index > 0 for use in uses)


def weights_of(op: KernelOp, store: WeightStore) -> dict[str, tuple[Array, str]]:
    """The weights by the names of the layer's settings, with the names that they have in the model, if any."""
    found: dict[str, tuple[Array, str]] = {}
    for name, value in (("kernel", op.kernel), ("bias", op.bias)):
        if value is not None and isinstance(value.owner, ConstantOp):
            hint = value.name_hint
            found[name] = value.owner.array(store), "" if hint is None else name_of_hint(hint)
    return found


def kernel_settings(op: KernelOp) -> dict[str, object]:
    """What the dimensions of the kernel say."""
    first, second, *window = _lengths(op.kernel)
    maps = first if isinstance(op, ConvolutionOp) else second * op.groups
    return {"num_output_maps": maps, "kernel_size_nd": Dims(window)}


def _has_words(op: KernelOp) -> bool:
    """Whether the settings of the layer say all that the properties of the op do."""
    settings = {setting.prop: setting for setting in settings_of(layer_class_of(op))}
    for name, value in op.properties.items():
        setting = settings.get(name)
        if setting is None:
            if name != "operandSegmentSizes" and value != _default(op, name):
                return False
            continue
        try:
            setting.from_property(value)
        except (KeyError, ValueError):
            return False
    return True


def _lengths(value: SSAValue) -> list[int]:
    return [int(str(length)) for length in dims(value.type)]


def _default(op: KernelOp, name: str) -> object:
    return type(op).get_irdl_definition().properties[name].default_value
