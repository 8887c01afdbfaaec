"""IBuilderConfig: what a build may do, and what it is to make (tensorrt-features.md#3.4 to 3.16)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, cast

from mlirt.builder.api.device_memory import memory_of_the_device
from mlirt.builder.api.dla_rules import why_not_on_dla
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
    HardwareCompatibilityLevel,
    MemoryPoolType,
    PreviewFeature,
    ProfilingVerbosity,
    QuantizationFlag,
    TacticSource,
)
from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.fixed_attributes import FixedAttributes
from mlirt.tensorrt.later_settings import LaterSetting
from mlirt.tensorrt.reported_version import reports_at_least
from mlirt.tensorrt.reporting import Reporter

if TYPE_CHECKING:
    from mlirt.builder.calibration.calibrators import IInt8Calibrator
    from mlirt.frontend.network.layer import ILayer
    from mlirt.frontend.network.record import LayerRecord

_TF32_ALONE = 1 << BuilderFlag.TF32
_ALL_SOURCES = (1 << len(TacticSource)) - 1
# Bytes that a DLA's pools have unless they are set.
_DLA_POOLS = {
    MemoryPoolType.DLA_MANAGED_SRAM: 1 << 20,
    MemoryPoolType.DLA_LOCAL_DRAM: 1 << 30,
    MemoryPoolType.DLA_GLOBAL_DRAM: 1 << 29,
}
_MIN_DLA_POOL = 4096
_HIGHEST_LEVEL = 5


def _optimization_level(value: object) -> int:
    level = int(cast("int", value))
    if not 0 <= level <= _HIGHEST_LEVEL:
        raise ValueError(f"builder_optimization_level: expected a number from 0 to {_HIGHEST_LEVEL}, got {value}")
    return level


def _compatibility_level(level: object) -> object:
    expect("hardware_compatibility_level", level, HardwareCompatibilityLevel)
    return level


def _libraries(paths: Sequence[str]) -> Sequence[str]:
    if paths:
        raise UnsupportedError(f"plugins_to_serialize: plugins are Python classes, got {list(paths)}")
    return ()


class IBuilderConfig(FixedAttributes, ContextManager):
    """The settings of one build. They are kept as they are made; what they ask for is checked when a network is built.

    `target` is mlirt's own: "cuda", "cpu", or "auto" for cuda where there is a GPU.
    """

    builder_optimization_level = LaterSetting((8, 6), 3, _optimization_level)
    """How long a build may take, from 0 to 5: with 0 and 1 no tactic is timed."""
    max_aux_streams = LaterSetting((8, 6), -1, int)
    """The most streams beside the caller's that an engine may use, which are none."""
    hardware_compatibility_level = LaterSetting((8, 6), HardwareCompatibilityLevel.NONE, _compatibility_level)
    """AMPERE_PLUS is refused when an engine is built for a GPU: its kernels are for one model of GPU."""
    plugins_to_serialize = LaterSetting((8, 6), (), _libraries)
    """Shared libraries of plugins that a plan has to carry, of which there are none."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._later: dict[str, object] = {}
        self.reset()
        self.fix_attributes()

    def reset(self) -> None:
        """All settings as they were in the beginning (tensorrt-features.md#3.14)."""
        self.target = "auto"
        self._later.clear()
        self._flags = _TF32_ALONE
        self._quantization_flags = 0
        self._previews = dict.fromkeys(PreviewFeature, False)
        self._pools: dict[MemoryPoolType, int] = {}
        self._capability = EngineCapability.STANDARD
        self._default_device = DeviceType.GPU
        self._devices: dict[LayerRecord, DeviceType] = {}
        self._dla_core = -1
        self._rounds = ROUNDS
        self._profiles: list[IOptimizationProfile] = []
        self._calibration_profile: IOptimizationProfile | None = None
        self._timing_cache: TimingCache | None = None
        self._tactic_sources: int | None = None
        self.avg_timing_iterations = CALLS
        self.cpu_timing = False
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
        """The most memory beside its tensors that a layer of an engine for a GPU may take (tensorrt-features.md#3.6,
        15.17).

        Ways that take more, such as those that add up parts of a sum, are left out. The pools of a DLA are powers of
        two from 4 KiB on (tensorrt-features.md#3.7, 29.8): another size is an error in the log, and changes nothing.
        """
        expect("set_memory_pool_limit()", pool, MemoryPoolType)
        size = int(pool_size)
        if pool in _DLA_POOLS and (size < _MIN_DLA_POOL or size & (size - 1)):
            self._reporter.error(
                "builder_config.py::setMemoryPoolLimit",
                f"MemoryPoolType.{pool.name}: expected a power of two from {_MIN_DLA_POOL} on, got {size}",
            )
            return
        self._pools[pool] = size

    def get_memory_pool_limit(self, pool: MemoryPoolType) -> int:
        """The limit; unless it was set, all memory of the device, and the usual sizes of a DLA's pools."""
        if pool in self._pools:
            return self._pools[pool]
        return _DLA_POOLS[pool] if pool in _DLA_POOLS else memory_of_the_device(self.target)

    @property
    def workspace_limit(self) -> int | None:
        """The limit that was set for the workspace; None where none was (mlirt's own)."""
        return self._pools.get(MemoryPoolType.WORKSPACE)

    @property
    def min_timing_iterations(self) -> int:
        deprecated("avg_timing_iterations")
        return self._rounds

    @min_timing_iterations.setter
    def min_timing_iterations(self, rounds: int) -> None:
        deprecated("avg_timing_iterations")
        self._rounds = rounds

    @property
    def times_no_tactics(self) -> bool:
        """Whether tactics are chosen by their estimates alone: the flag is set, or a level of 0 or 1 (mlirt's own)."""
        is_quick = reports_at_least(8, 6) and self.builder_optimization_level <= 1
        return is_quick or self.get_flag(BuilderFlag.ENABLE_TACTIC_HEURISTIC)

    @property
    def rejects_empty_algorithms(self) -> bool:
        """Whether a selector has to allow something: the flag, or STRICT_TYPES, is set (mlirt's own,
        tensorrt-features.md#3.5).
        """
        return self.get_flag(BuilderFlag.REJECT_EMPTY_ALGORITHMS) or self.get_flag(BuilderFlag.STRICT_TYPES)

    @property
    def timing_rounds(self) -> int:
        """`min_timing_iterations` (mlirt's own)."""
        return self._rounds

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
        expect("engine_capability", capability, EngineCapability)
        self._capability = capability

    @property
    def num_optimization_profiles(self) -> int:
        return len(self._profiles)

    def for_profile(self, profile: IOptimizationProfile) -> IBuilderConfig:
        """The same with one other profile alone (mlirt's own)."""
        own = copy(self)
        own._profiles = [profile]
        return own

    @property
    def optimization_profiles(self) -> tuple[IOptimizationProfile, ...]:
        """The profiles in the order of their indices (mlirt's own)."""
        return tuple(self._profiles)

    def add_optimization_profile(self, profile: IOptimizationProfile) -> int:
        """The index of a new profile, of which ranges were checked as they were set (tensorrt-features.md#3.15).

        What it lacks is told by the build, which knows the inputs.
        """
        self._profiles.append(profile)
        return len(self._profiles) - 1

    def set_calibration_profile(self, profile: IOptimizationProfile) -> bool:
        """The shapes with which to calibrate: the usual ones of the profile."""
        self._calibration_profile = None if profile.is_empty else profile
        return not profile.is_empty

    def get_calibration_profile(self) -> IOptimizationProfile | None:
        return self._calibration_profile

    def set_tactic_sources(self, tactic_sources: int) -> bool:
        """Let the builder measure kernels of libraries beside its own (tensorrt-features.md#15.13): cuBLASLt's and
        cuDNN's.

        The other choices are kept and change nothing: their kernels are this builder's own. False, with an error in the
        log, for a bit that is no source.
        """
        if not 0 <= int(tactic_sources) <= _ALL_SOURCES:
            self._reporter.error(
                "builder_config.py::setTacticSources",
                f"{int(tactic_sources):#x} is no mask of {len(TacticSource)} sources",
            )
            return False
        self._tactic_sources = int(tactic_sources)
        return True

    @property
    def measured_libraries(self) -> tuple[str, ...]:
        """The libraries whose kernels a build measures (mlirt's own): none where the preview feature forbids them."""
        forbidden = self._previews[PreviewFeature.DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805]
        return () if forbidden else sources_of_mask(self._tactic_sources or 0)

    def get_tactic_sources(self) -> int:
        """What was set; before, all that are permitted, of which none is used by itself."""
        return _ALL_SOURCES if self._tactic_sources is None else self._tactic_sources

    def create_timing_cache(self, serialized_timing_cache: bytes) -> TimingCache:
        """A timing cache of what `serialize` gave, or an empty one of no bytes."""
        return TimingCache(bytes(serialized_timing_cache))

    def set_timing_cache(self, cache: TimingCache, ignore_mismatch: bool) -> bool:
        """Use a cache (tensorrt-features.md#15.9, 15.10).

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
        """Where layers run for which `set_device_type` says nothing."""
        return self._default_device

    @default_device_type.setter
    def default_device_type(self, device: DeviceType) -> None:
        expect("default_device_type", device, DeviceType)
        self._default_device = device

    @property
    def DLA_core(self) -> int:
        """The number that was set; -1, as there is no DLA, before."""
        return self._dla_core

    @DLA_core.setter
    def DLA_core(self, core: int) -> None:
        self._dla_core = int(core)

    def set_device_type(self, layer: ILayer, device_type: DeviceType) -> None:
        """Where a layer shall run (tensorrt-features.md#29.2); for a DLA a build falls back to the GPU, or fails
        (29.4).
        """
        expect("set_device_type()", device_type, DeviceType)
        self._devices[layer.record] = device_type

    def get_device_type(self, layer: ILayer) -> DeviceType:
        return self._devices.get(layer.record, self._default_device)

    def is_device_type_set(self, layer: ILayer) -> bool:
        return layer.record in self._devices

    def reset_device_type(self, layer: ILayer) -> None:
        """Let a layer run where the default says."""
        self._devices.pop(layer.record, None)

    def can_run_on_DLA(self, layer: ILayer) -> bool:
        """Whether the rules of TensorRT's guide let a DLA run a layer with these settings (tensorrt-features.md#29.3).
        """
        return why_not_on_dla(layer, self) is None
