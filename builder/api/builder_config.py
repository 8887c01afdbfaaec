"""IBuilderConfig: what a build may do, and what it is to make (features 3.4 to 3.16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlirt.builder.api.optimization_profile import IOptimizationProfile
from mlirt.builder.tactics.selection import CALLS
from mlirt.builder.tactics.tactic_sources import sources_of_mask
from mlirt.builder.tactics.timing_cache import TimingCache
from mlirt.builder.tactics.tuning import ROUNDS, this_place
from mlirt.errors import UnsupportedError
from mlirt.tensorrt.argument_types import expect
from mlirt.tensorrt.build_enums import (
    BuilderFlag,
    DeviceType,
    EngineCapability,
    MemoryPoolType,
    PreviewFeature,
    ProfilingVerbosity,
    QuantizationFlag,
)
from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.fixed_attributes import FixedAttributes
from mlirt.tensorrt.reporting import Reporter

if TYPE_CHECKING:
    from mlirt.builder.calibration.calibrators import IInt8Calibrator
    from mlirt.frontend.network.layer import ILayer

# Flags that ask for what there is not; the others permit or are kept.
_REFUSED = {
    BuilderFlag.SAFETY_SCOPE: "there is no safety runtime",
    BuilderFlag.STRICT_TYPES: "use OBEY_PRECISION_CONSTRAINTS or PREFER_PRECISION_CONSTRAINTS",
}
_NO_DLA = "there is no DLA; leave the layers on DeviceType.GPU"
_TF32_ALONE = 1 << BuilderFlag.TF32


class IBuilderConfig(FixedAttributes, ContextManager):
    """The settings of one build; what is not supported raises `UnsupportedError` when it is asked for.

    `target` is mlirt's own: "cuda", "cpu", or "auto" for cuda where there is a GPU.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.reset()
        self.fix_attributes()

    def reset(self) -> None:
        """All settings as they were in the beginning (feature 3.14)."""
        self.target = "auto"
        self._flags = _TF32_ALONE
        self._quantization_flags = 0
        self._previews = dict.fromkeys(PreviewFeature, False)
        self._pools: dict[MemoryPoolType, int] = {}
        self._capability = EngineCapability.STANDARD
        self._profiles: list[IOptimizationProfile] = []
        self._calibration_profile: IOptimizationProfile | None = None
        self._timing_cache: TimingCache | None = None
        self._tactic_sources: int | None = None
        self.min_timing_iterations = ROUNDS
        self.avg_timing_iterations = CALLS
        self.int8_calibrator: IInt8Calibrator | None = None
        self.profile_stream = 0
        self.profiling_verbosity = ProfilingVerbosity.LAYER_NAMES_ONLY
        self.algorithm_selector: Any = None

    @property
    def flags(self) -> int:
        """One bit for each `BuilderFlag`."""
        return self._flags

    @flags.setter
    def flags(self, flags: int) -> None:
        for flag in BuilderFlag:
            if flags >> flag & 1:
                self.set_flag(flag)
            else:
                self.clear_flag(flag)

    def set_flag(self, flag: BuilderFlag) -> None:
        expect("set_flag()", flag, BuilderFlag)
        if flag in _REFUSED:
            raise UnsupportedError(f"BuilderFlag.{flag.name}: {_REFUSED[flag]}")
        self._flags |= 1 << flag

    def clear_flag(self, flag: BuilderFlag) -> None:
        expect("clear_flag()", flag, BuilderFlag)
        self._flags &= ~(1 << flag)

    def get_flag(self, flag: BuilderFlag) -> bool:
        expect("get_flag()", flag, BuilderFlag)
        return bool(self._flags >> flag & 1)

    @property
    def quantization_flags(self) -> int:
        """One bit for each `QuantizationFlag`."""
        return self._quantization_flags

    @quantization_flags.setter
    def quantization_flags(self, flags: int) -> None:
        self._quantization_flags = int(flags)

    def set_quantization_flag(self, flag: QuantizationFlag) -> None:
        self._quantization_flags |= 1 << flag

    def clear_quantization_flag(self, flag: QuantizationFlag) -> None:
        self._quantization_flags &= ~(1 << flag)

    def get_quantization_flag(self, flag: QuantizationFlag) -> bool:
        return bool(self._quantization_flags >> flag & 1)

    def set_preview_feature(self, feature: PreviewFeature, enable: bool) -> None:
        """Dynamic shapes are always fast ones; without external tactic sources no library is measured (28.2)."""
        expect("set_preview_feature()", feature, PreviewFeature)
        self._previews[feature] = bool(enable)

    def get_preview_feature(self, feature: PreviewFeature) -> bool:
        return self._previews[feature]

    def set_memory_pool_limit(self, pool: MemoryPoolType, pool_size: int) -> None:
        """The most memory beside its tensors that a layer of an engine for a GPU may take (features 3.6, 15.17).

        Ways that take more, such as those that add up parts of a sum, are left out; 0 is no limit.
        """
        if pool is not MemoryPoolType.WORKSPACE:
            raise UnsupportedError(f"MemoryPoolType.{pool.name}: {_NO_DLA}")
        self._pools[pool] = int(pool_size)

    def get_memory_pool_limit(self, pool: MemoryPoolType) -> int:
        """The limit; 0 where none was set."""
        return self._pools.get(pool, 0)

    @property
    def max_workspace_size(self) -> int:
        deprecated("get_memory_pool_limit")
        return self.get_memory_pool_limit(MemoryPoolType.WORKSPACE)

    @max_workspace_size.setter
    def max_workspace_size(self, size: int) -> None:
        deprecated("set_memory_pool_limit")
        self.set_memory_pool_limit(MemoryPoolType.WORKSPACE, size)

    @property
    def engine_capability(self) -> EngineCapability:
        return self._capability

    @engine_capability.setter
    def engine_capability(self, capability: EngineCapability) -> None:
        if capability is not EngineCapability.STANDARD:
            raise UnsupportedError(f"EngineCapability.{capability.name}: only STANDARD engines are built")
        self._capability = capability

    @property
    def num_optimization_profiles(self) -> int:
        return len(self._profiles)

    @property
    def optimization_profiles(self) -> tuple[IOptimizationProfile, ...]:
        """The profiles in the order of their indices (mlirt's own)."""
        return tuple(self._profiles)

    def add_optimization_profile(self, profile: IOptimizationProfile) -> int:
        """The index of a new profile; -1, with an error in the log, for an empty one (feature 3.15)."""
        if profile.is_empty:
            self._reporter.error("builder_config.py::addOptimizationProfile", "the optimization profile is empty")
            return -1
        self._profiles.append(profile)
        return len(self._profiles) - 1

    def set_calibration_profile(self, profile: IOptimizationProfile) -> bool:
        """The shapes with which to calibrate: the usual ones of the profile."""
        self._calibration_profile = None if profile.is_empty else profile
        return not profile.is_empty

    def get_calibration_profile(self) -> IOptimizationProfile | None:
        return self._calibration_profile

    def set_tactic_sources(self, tactic_sources: int) -> bool:
        """Let the builder measure kernels of libraries beside its own (feature 15.13): cuBLASLt's and cuDNN's.

        The other choices are kept and change nothing: their kernels are this builder's own.
        """
        self._tactic_sources = int(tactic_sources)
        return True

    @property
    def measured_libraries(self) -> tuple[str, ...]:
        """The libraries whose kernels a build measures (mlirt's own): none where the preview feature forbids them."""
        forbidden = self._previews[PreviewFeature.DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805]
        return () if forbidden else sources_of_mask(self.get_tactic_sources())

    def get_tactic_sources(self) -> int:
        """What was set; 0, as no library is used by itself, before."""
        return self._tactic_sources or 0

    def create_timing_cache(self, serialized_timing_cache: bytes) -> TimingCache:
        """A timing cache of what `serialize` gave, or an empty one of no bytes."""
        return TimingCache(bytes(serialized_timing_cache))

    def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool) -> bool:
        """Use a cache (features 15.9, 15.10).

        False, with an error in the log, where it has times and this builder measured none of them on this device,
        unless `ignore_mismatch`: such times are kept and not used.
        """
        here = None if ignore_mismatch else this_place()
        if here is not None and cache.places() and here not in cache.places():
            self._reporter.error(
                "builder_config.py::setTimingCache",
                f"the timing cache was not made here: it has times of {'; '.join(cache.places())[:200]}",
            )
            return False
        self._timing_cache = cache
        return True

    def get_timing_cache(self) -> TimingCache | None:
        return self._timing_cache

    @property
    def default_device_type(self) -> DeviceType:
        return DeviceType.GPU

    @default_device_type.setter
    def default_device_type(self, device: DeviceType) -> None:
        if device is DeviceType.DLA:
            raise UnsupportedError(_NO_DLA)

    @property
    def DLA_core(self) -> int:
        return -1

    @DLA_core.setter
    def DLA_core(self, core: int) -> None:
        raise UnsupportedError(_NO_DLA)

    def set_device_type(self, layer: ILayer, device_type: DeviceType) -> None:
        if device_type is DeviceType.DLA:
            raise UnsupportedError(f"{layer.name}: {_NO_DLA}")

    def get_device_type(self, layer: ILayer) -> DeviceType:
        return DeviceType.GPU

    def is_device_type_set(self, layer: ILayer) -> bool:
        return False

    def reset_device_type(self, layer: ILayer) -> None:
        """All layers are on the GPU."""

    def can_run_on_DLA(self, layer: ILayer) -> bool:
        return False
