"""Strongly typed networks, which version 10 brought: types are those of inputs, weights, casts and quantize layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.errors import InvalidModelError
from mlirt.tensorrt.build_enums import BuilderFlag

if TYPE_CHECKING:
    from mlirt.builder.api.builder_config import IBuilderConfig
    from mlirt.frontend.network.definition import INetworkDefinition

_CHOOSE_TYPES = (
    BuilderFlag.FP16, BuilderFlag.INT8, BuilderFlag.STRICT_TYPES, BuilderFlag.OBEY_PRECISION_CONSTRAINTS,
    BuilderFlag.PREFER_PRECISION_CONSTRAINTS, *(one for one in BuilderFlag if one.name == "FP8"),
)  # fmt: skip
"""Flags that let a builder compute in other types than the network has."""


def check_strong_types(network: INetworkDefinition, config: IBuilderConfig) -> None:
    """Raise `InvalidModelError`, with the flag, layer or tensor, where something chooses types of a strongly typed
    network.
    """
    if not network.is_strongly_typed:
        return
    for flag in _CHOOSE_TYPES:
        if config.get_flag(flag):
            raise InvalidModelError(f"the network is strongly typed: BuilderFlag.{flag.name} must not be set")
    if config.int8_calibrator is not None:
        raise InvalidModelError("the network is strongly typed: there must be no calibrator; add quantize layers")
    for record in network.graph.records:
        if record.precision is not None or record.output_types:
            raise InvalidModelError(
                f"{record.name}: the network is strongly typed, so that no layer has a precision or output type set; "
                "cast the tensors"
            )
    for tensor in (*network.graph.inputs, *(one for record in network.graph.records for one in record.outputs)):
        if tensor.range is not None:
            raise InvalidModelError(f"{tensor.name}: the network is strongly typed: tensors have no dynamic ranges")
