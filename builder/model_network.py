"""From a model of any form to a network in the `trt` dialect, with what its configuration says of inputs and layers."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.builder.model_kinds import is_source_network, is_torch_model
from mlirt.builder.profiles import Profile, pinned_shapes
from mlirt.counted_warnings import warn
from mlirt.dialects.context import RtContext
from mlirt.dialects.locations import names
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    import onnx
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.builder.config.build_config import Array
    from mlirt.builder.inner_outputs import InnerOutputs
    from mlirt.builder.model_kinds import SourceNetwork
    from mlirt.frontend.onnx.graph_inputs import Shapes

    ModelSource: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto"
    # Modules and exported programs of PyTorch; checkers do not know it here.
    TorchModel: TypeAlias = Any


def imported(
    model: ModelSource | SourceNetwork | TorchModel,
    ctx: RtContext,
    profiles: Mapping[str, Profile] | None,
    shapes: Shapes,
    constants: Mapping[str, Array] | None,
    inner: InnerOutputs | None = None,
    *,
    keeps_weights: bool = False,
) -> ModuleOp:
    """The network of a model, its dimensions as profiles and shapes say, with inner tensors among its outputs."""
    if is_torch_model(model):
        from mlirt.frontend.torch.exported_network import exported_network

        return exported_network(model).import_into(ctx, keeps_weights=keeps_weights)
    if is_source_network(model):
        if shapes or constants:
            raise InvalidInputError("input_shapes and constants are for ONNX models; export with other inputs")
        return model.import_into(ctx, keeps_weights=keeps_weights)
    from mlirt.frontend.onnx.graph_inputs import input_dims
    from mlirt.frontend.onnx.importer import import_model
    from mlirt.frontend.onnx.model_reader import read_model

    if profiles:
        shapes = {**shapes, **pinned_shapes(profiles, input_dims(read_model(model).proto, shapes))}
    names = () if inner is None else inner.names
    return import_model(model, ctx, shapes, constants, keeps_weights=keeps_weights, outputs=names)


def asked_precisions(module: ModuleOp, asked: Mapping[str, str]) -> dict[str, str]:
    """The format of each layer: `*` stands for those that compute with floating-point numbers and are not named."""
    found = {name: text for name, text in asked.items() if name != "*"}
    _warn_of_unknown_layers(module, found)
    if "*" in asked:
        for op in module.walk():
            if isinstance(op, TensorOp) and not isinstance(op, ConstantOp) and _has_floats(op):
                found |= {name: asked["*"] for name in names(op.location) if name not in found}
    return found


def _has_floats(op: TensorOp) -> bool:
    return any(is_float(element_of(result.type)) for result in op.results)


def _warn_of_unknown_layers(module: ModuleOp, asked: Mapping[str, str]) -> None:
    layers = {name for op in module.walk() for name in names(op.location)} if asked else set[str]()
    for name in sorted(asked.keys() - layers):
        near = difflib.get_close_matches(name, sorted(layers), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        warn(f"layer_precisions: the network has no layer {name!r}{hint}", stacklevel=3)
