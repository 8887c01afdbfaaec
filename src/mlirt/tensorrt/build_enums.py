"""The enumerations of building an engine: flags, pools, sources, verbosity (TensorRT 8.5's names and numbers, and those
of 8.6 and 10 where these are told).
"""

from mlirt.tensorrt.enumeration import Enumeration
from mlirt.tensorrt.reported_version import reports_at_least

_IS_86, _IS_10 = reports_at_least(8, 6), reports_at_least(10)
STRONGLY_TYPED_BIT = 1
"""Of `create_network`'s argument, where version 10 is told."""


class NetworkDefinitionCreationFlag(Enumeration):
    """Bits of the argument of `Builder.create_network`."""

    EXPLICIT_BATCH = 0
    if _IS_10:
        STRONGLY_TYPED = STRONGLY_TYPED_BIT
    else:
        EXPLICIT_PRECISION = 1


class BuilderFlag(Enumeration):
    """What a builder is permitted or asked to do."""

    FP16 = 0
    INT8 = 1
    DEBUG = 2
    GPU_FALLBACK = 3
    STRICT_TYPES = 4
    REFIT = 5
    DISABLE_TIMING_CACHE = 6
    TF32 = 7
    SPARSE_WEIGHTS = 8
    SAFETY_SCOPE = 9
    OBEY_PRECISION_CONSTRAINTS = 10
    PREFER_PRECISION_CONSTRAINTS = 11
    DIRECT_IO = 12
    REJECT_EMPTY_ALGORITHMS = 13
    ENABLE_TACTIC_HEURISTIC = 14
    if _IS_86:
        VERSION_COMPATIBLE = 15
        EXCLUDE_LEAN_RUNTIME = 16
        FP8 = 17


class QuantizationFlag(Enumeration):
    """How calibration goes."""

    CALIBRATE_BEFORE_FUSION = 0


class MemoryPoolType(Enumeration):
    """What a limit of memory is for."""

    WORKSPACE = 0
    DLA_MANAGED_SRAM = 1
    DLA_LOCAL_DRAM = 2
    DLA_GLOBAL_DRAM = 3
    if _IS_86:
        TACTIC_DRAM = 4


class TacticSource(Enumeration):
    """Libraries to take kernels from; this builder uses CUBLAS_LT and CUDNN, and only where it is asked to."""

    CUBLAS = 0
    CUBLAS_LT = 1
    CUDNN = 2
    EDGE_MASK_CONVOLUTIONS = 3
    JIT_CONVOLUTIONS = 4


class EngineCapability(Enumeration):
    """What an engine is restricted to."""

    STANDARD = 0
    DEFAULT = 0
    SAFETY = 1
    SAFE_GPU = 1
    DLA_STANDALONE = 2
    SAFE_DLA = 2


class ProfilingVerbosity(Enumeration):
    """How much an engine tells of its layers."""

    LAYER_NAMES_ONLY = 0
    DEFAULT = 0
    NONE = 1
    DETAILED = 2
    VERBOSE = 2


class PreviewFeature(Enumeration):
    """What could be switched on ahead of a release."""

    FASTER_DYNAMIC_SHAPES_0805 = 0
    DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805 = 1
    if _IS_86:
        PROFILE_SHARING_0806 = 2


for _one in tuple(PreviewFeature)[:2]:  # the cookbook's names, which are no members: programs go through those
    setattr(PreviewFeature, f"k{_one.name}", _one)


class HardwareCompatibilityLevel(Enumeration):
    """Which GPUs an engine is for (8.6)."""

    NONE = 0
    AMPERE_PLUS = 1


class OnnxParserFlag(Enumeration):
    """How models are read (8.6)."""

    NATIVE_INSTANCENORM = 0


class DeviceType(Enumeration):
    """Where a layer runs."""

    GPU = 0
    DLA = 1


class WeightsRole(Enumeration):
    """What weights are to their layer."""

    KERNEL = 0
    BIAS = 1
    SHIFT = 2
    SCALE = 3
    CONSTANT = 4
    ANY = 5
