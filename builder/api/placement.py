"""What a build does about layers and capabilities for devices that are not here (tensorrt-features.md#28.4, 29.2 to
29.6).

Settings are kept as they were made; what they ask for is checked when a network is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.builder.api.dla_rules import why_not_on_dla
from mlirt.builder.gpu_code import AMPERE_AND_LATER
from mlirt.builder.host import gpu_is_here
from mlirt.errors import UnsupportedError
from mlirt.tensorrt.build_enums import BuilderFlag, DeviceType, EngineCapability, HardwareCompatibilityLevel
from mlirt.tensorrt.layer_enums import LayerType
from mlirt.tensorrt.reported_version import reports_at_least

if TYPE_CHECKING:
    from mlirt.builder.api.builder_config import IBuilderConfig
    from mlirt.frontend.network.definition import INetworkDefinition
    from mlirt.tensorrt.reporting import Reporter

# Constants lie in the engine, wherever the layers that read them run.
_NOWHERE = (LayerType.CONSTANT,)
# What data decide, or plugins, is outside of what TensorRT 8.5 lets a safe engine have.
_UNSAFE = frozenset(
    {
        LayerType.ASSERTION,
        LayerType.CONDITION,
        LayerType.CONDITIONAL_INPUT,
        LayerType.CONDITIONAL_OUTPUT,
        LayerType.EINSUM,
        LayerType.FILL,
        LayerType.GRID_SAMPLE,
        LayerType.ITERATOR,
        LayerType.LOOP_OUTPUT,
        LayerType.NMS,
        LayerType.NON_ZERO,
        LayerType.PLUGIN_V2,
        LayerType.RAGGED_SOFTMAX,
        LayerType.RECURRENCE,
        LayerType.RNN_V2,
        LayerType.SHAPE,
        LayerType.TRIP_LIMIT,
    }
)


_WITHOUT_EFFECT = {
    "VERSION_COMPATIBLE": "a plan is read by every version that has its format",
    "EXCLUDE_LEAN_RUNTIME": "a plan holds no runtime",
    "FP8": "products between Quantize and Dequantize layers of FP8 compute in it with and without the flag",
}


def compatible_architecture(config: IBuilderConfig) -> str | None:
    """The architecture of GPUs that code is for under HardwareCompatibilityLevel.AMPERE_PLUS; else None: that of the
    GPU that is here.
    """
    is_for_gpu = config.target == "cuda" or (config.target == "auto" and gpu_is_here())
    if not is_for_gpu or not reports_at_least(8, 6):
        return None
    is_wide = config.hardware_compatibility_level is HardwareCompatibilityLevel.AMPERE_PLUS
    return AMPERE_AND_LATER if is_wide else None


def check_devices(network: INetworkDefinition, config: IBuilderConfig, reporter: Reporter) -> None:
    """Raise `UnsupportedError`, naming the layer, for what has no device here; with GPU_FALLBACK warn instead."""
    _check_capability(config)
    _check_safety(network, config)
    if reports_at_least(8, 6):
        _check_later_settings(config, reporter)
    wanted = [
        layer for layer in network if layer.type not in _NOWHERE and config.get_device_type(layer) is DeviceType.DLA
    ]
    for layer in wanted:
        why = why_not_on_dla(layer, config)
        reason = "there is no DLA compiler in this implementation" if why is None else why
        if not config.get_flag(BuilderFlag.GPU_FALLBACK):
            raise UnsupportedError(f"{layer.name} cannot run on DLA, and BuilderFlag.GPU_FALLBACK is not set: {reason}")
        reporter.warning(f"Layer '{layer.name}' cannot run on DLA, falling back to GPU: {reason}")


def _check_capability(config: IBuilderConfig) -> None:
    if config.engine_capability is EngineCapability.DLA_STANDALONE:
        raise UnsupportedError("EngineCapability.DLA_STANDALONE: there is no DLA compiler in this implementation")
    if config.engine_capability is EngineCapability.SAFETY:
        raise UnsupportedError(
            "EngineCapability.SAFETY: there is no safety runtime, and no engine here is certified; "
            "BuilderFlag.SAFETY_SCOPE checks the layers of a STANDARD engine"
        )


def _check_later_settings(config: IBuilderConfig, reporter: Reporter) -> None:
    """Those that came with 8.6."""
    for name, why in _WITHOUT_EFFECT.items():
        if name in BuilderFlag.__members__ and config.get_flag(BuilderFlag[name]):
            reporter.warning(f"BuilderFlag.{name} has no effect: {why}")


def _check_safety(network: INetworkDefinition, config: IBuilderConfig) -> None:
    if not config.get_flag(BuilderFlag.SAFETY_SCOPE):
        return
    for layer in network:
        if layer.type in _UNSAFE:
            raise UnsupportedError(
                f"{layer.name}: layers of the kind {layer.type.name} are outside of BuilderFlag.SAFETY_SCOPE"
            )
    for tensor in network.graph.inputs:
        if -1 in tensor.shape:
            raise UnsupportedError(f"{tensor.name}: dynamic dimensions are outside of BuilderFlag.SAFETY_SCOPE")
