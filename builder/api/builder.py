"""Builder: makes networks, configurations and engines (tensorrt-features.md#2.1, 2.15, 3.1 to 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.builder.api.builder_config import IBuilderConfig
from mlirt.builder.api.implicit_batch import explicit
from mlirt.builder.api.network_build import network_plan
from mlirt.builder.api.optimization_profile import IOptimizationProfile
from mlirt.builder.host import automatic_target, gpu_is_here
from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.frontend.network.definition import INetworkDefinition
from mlirt.frontend.network.emission import InvalidLayerError
from mlirt.runtime.api.host_memory import IHostMemory
from mlirt.runtime.current_device import current_ordinal
from mlirt.tensorrt.build_enums import STRONGLY_TYPED_BIT, NetworkDefinitionCreationFlag
from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.entry_point import EntryPoint
from mlirt.tensorrt.logger import ILogger
from mlirt.tensorrt.reported_version import reports_at_least

if TYPE_CHECKING:
    from mlirt.runtime.api.cuda_engine import ICudaEngine

_EXPLICIT = 1 << NetworkDefinitionCreationFlag.EXPLICIT_BATCH


class FailedValidation(InvalidModelError):
    """Which layer is why a network cannot be built."""

    def __init__(self, layer: str) -> None:
        super().__init__(f"Layer {layer} failed validation")


class Builder(EntryPoint, ContextManager):
    """The way from a network to an engine; what it has to say goes to the logger."""

    _max_batch_size = 1

    def __init__(self, logger: ILogger) -> None:
        """The builder belongs to the GPU that is current in this thread now (tensorrt-features.md#13.22)."""
        self._ordinal = current_ordinal()
        super().__init__(logger)

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        """A network without layers; without the flag EXPLICIT_BATCH its tensors are those of one sample
        (tensorrt-features.md#2.17).

        Where version 10 is reported each network has an explicit batch, as there, and may be STRONGLY_TYPED.
        """
        is_implicit = not flags & _EXPLICIT and not reports_at_least(10)
        network = INetworkDefinition(self.logger, has_implicit_batch=is_implicit)
        network.is_strongly_typed = reports_at_least(10) and bool(flags >> STRONGLY_TYPED_BIT & 1)
        network.error_recorder = self.error_recorder
        network.made_by = self
        return network

    def create_builder_config(self) -> IBuilderConfig:
        return IBuilderConfig(self.reporter)

    def create_optimization_profile(self) -> IOptimizationProfile:
        return IOptimizationProfile()

    def build_serialized_network(self, network: INetworkDefinition, config: IBuilderConfig) -> IHostMemory | None:
        """The plan of a network; None, with the reason in the log, where it cannot be built (tensorrt-features.md#3.1).
        """
        if network is None or config is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise TypeError("build_serialized_network(): expected a network and a builder configuration, got None")
        try:
            self._check_device(config)
            network, config = explicit(network, config, self._max_batch_size)
            return IHostMemory(network_plan(network, config, self.reporter))
        except Exception as error:  # of calibrators, selectors and loggers too: TensorRT's call never raises
            self.reporter.error("builder.py::buildSerializedNetwork", error)
            if isinstance(error, InvalidLayerError):
                self.reporter.error("network.py::validate", FailedValidation(error.layer))
            return None

    def _check_device(self, config: IBuilderConfig) -> None:
        """Refuse to measure kernels on another GPU than the one that was current when the builder was made
        (tensorrt-features.md#31.4).
        """
        current = current_ordinal()
        if current == self._ordinal or config.target == "cpu":
            return
        if config.target == "cuda" or automatic_target()[0] == "cuda":
            raise UnsupportedError(
                "Builder was created on device different from current device: it belongs to device "
                f"{self._ordinal}, and device {current} is current. Call cudaSetDevice({self._ordinal}) before the "
                "build, or make another builder."
            )

    def build_engine(self, network: INetworkDefinition, config: IBuilderConfig) -> ICudaEngine | None:
        """The engine of a network, or None (deprecated, tensorrt-features.md#3.2)."""
        deprecated("build_serialized_network")
        plan = self.build_serialized_network(network, config)
        if plan is None:
            return None
        from mlirt.runtime.api.runtime import Runtime

        runtime = Runtime(self.logger)
        runtime.gpu_allocator, runtime.error_recorder = self.gpu_allocator, self.error_recorder
        return runtime.deserialize_cuda_engine(plan)

    def is_network_supported(self, network: INetworkDefinition, config: IBuilderConfig) -> bool:
        """Whether each layer is complete and right; the first that is not is in the log (tensorrt-features.md#2.15)."""
        from mlirt.dialects.context import RtContext
        from mlirt.frontend.network.module import network_module

        try:
            network_module(network, RtContext())
        except Exception as error:
            self.reporter.error("builder.py::isNetworkSupported", error)
            return False
        return True

    def reset(self) -> None:
        """Forget the error recorder."""
        self.reporter.recorder = None

    @property
    def max_batch_size(self) -> int:
        """The largest batch of networks with an implicit one (tensorrt-features.md#2.17)."""
        deprecated("the batch dimension of the inputs")
        return self._max_batch_size

    @max_batch_size.setter
    def max_batch_size(self, size: int) -> None:
        deprecated("the batch dimension of the inputs")
        if size < 1:
            self.reporter.error("builder.py::setMaxBatchSize", f"max_batch_size: expected at least 1, got {size}")
            return
        self._max_batch_size = size

    @property
    def platform_has_tf32(self) -> bool:
        """Whether there is a GPU here: ours run on architectures that have TF32 (tensorrt-features.md#4.13)."""
        return gpu_is_here()

    @property
    def platform_has_fast_fp16(self) -> bool:
        """Whether there is a GPU here; a CPU computes half precision by way of float32."""
        return gpu_is_here()

    @property
    def platform_has_fast_int8(self) -> bool:
        """Whether there is a GPU here, or a CPU that multiplies bytes."""
        from mlirt.builder.host import cpu_target
        from mlirt.dialects.kernel.tile_products import INT8_PRODUCTS
        from mlirt.dialects.target import AMX

        return gpu_is_here() or bool(cpu_target().special & (INT8_PRODUCTS | AMX))

    @property
    def max_DLA_batch_size(self) -> int:
        return 0

    @property
    def num_DLA_cores(self) -> int:
        return 0
