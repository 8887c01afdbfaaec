"""ICudaEngine: a loaded plan by TensorRT's names (tensorrt-features.md#12.10, 12.18, 13.1 to 13.14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mlirt.errors import InvalidInputError, MlirtError
from mlirt.runtime.api.device_memory import largest_arena
from mlirt.runtime.api.engine_bindings import EngineBindings
from mlirt.runtime.api.engine_inspector import EngineInspector
from mlirt.runtime.api.engine_tensors import EngineTensor, engine_tensors, profile_shapes
from mlirt.runtime.api.execution_context import IExecutionContext
from mlirt.runtime.api.host_memory import IHostMemory
from mlirt.runtime.api.implicit_batch import largest_batch
from mlirt.runtime.api.profile_users import ProfileUsers
from mlirt.runtime.cuda_architectures import is_ptx
from mlirt.runtime.kept_network import is_refittable
from mlirt.runtime.loop_layers import loops_as_layers
from mlirt.runtime.size_program import SizeProgram
from mlirt.tensorrt.build_enums import EngineCapability, HardwareCompatibilityLevel, ProfilingVerbosity, TacticSource
from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.format_descriptions import format_description
from mlirt.tensorrt.reported_version import reports_at_least
from mlirt.tensorrt.reporting import Reporter, Reporting
from mlirt.tensorrt.run_enums import TensorFormat, TensorIOMode, TensorLocation

if TYPE_CHECKING:
    from mlirt.runtime.engine import Engine
    from mlirt.tensorrt.gpu_allocator import IGpuAllocator


class ICudaEngine(EngineBindings, Reporting, ContextManager):
    """An engine, on a GPU or on the CPU. Tensors have a name and, in the old methods, an index."""

    def __init__(self, engine: Engine, reporter: Reporter, allocator: IGpuAllocator | None = None) -> None:
        """`allocator`: the one that contexts take memory from, where it is not the driver's
        (tensorrt-features.md#18.1).
        """
        self.engine = engine
        self.allocator = allocator
        self.reporter = reporter
        self.manifest = engine.plan.manifest
        self.layers = loops_as_layers(self.manifest.layers)
        self.implicit_batch = largest_batch(self.manifest)
        self.tensors = engine_tensors(self.manifest)
        self.size_program = SizeProgram(self.manifest)
        self.tensor_names = list(self.tensors)
        is_dynamic = any(one.is_dynamic_input for one in self.tensors.values())
        self.profile_users = ProfileUsers(is_dynamic=is_dynamic and bool(self.manifest.profiles))
        self.fix_attributes()

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def num_io_tensors(self) -> int:
        return len(self.tensors)

    @property
    def num_layers(self) -> int:
        """How many the inspector knows: those of each profile, as versions before 10 count them
        (tensorrt-features.md#17.5).
        """
        return len(self.layers) * self.counted_profiles

    @property
    def counted_profiles(self) -> int:
        """How often each layer counts (mlirt's own)."""
        return 1 if reports_at_least(10) else self.num_optimization_profiles

    if reports_at_least(8, 6):

        @property
        def num_aux_streams(self) -> int:
            """How many streams of the caller's a run would use beside that of the call: none."""
            return 0

        @property
        def hardware_compatibility_level(self) -> HardwareCompatibilityLevel:
            """AMPERE_PLUS where the plan has PTX, for GPUs that it has no machine code for; else NONE."""
            codes = (arch for kernel in self.manifest.kernels for arch in kernel.objects)
            level = HardwareCompatibilityLevel
            return level.AMPERE_PLUS if any(map(is_ptx, codes)) else level.NONE

    @property
    def num_optimization_profiles(self) -> int:
        return max(1, len(self.manifest.profiles))

    @property
    def device_memory_size(self) -> int:
        """The bytes that a context needs for the largest shapes of the profiles, inputs and outputs left out.

        Dimensions that a run decides count as 1 where there is no profile.
        """
        return largest_arena(self.manifest)

    @property
    def has_implicit_batch_dimension(self) -> bool:
        """Whether shapes are those of one sample (tensorrt-features.md#2.17)."""
        deprecated("the shapes of the inputs")
        return self.implicit_batch is not None

    @property
    def max_batch_size(self) -> int:
        """The largest batch of `execute`; 1 with an explicit batch."""
        deprecated("the batch dimension of the inputs")
        return self.implicit_batch or 1

    def of_sample(self, shape: Dims) -> Dims:
        """A shape as the user is told it, without an implicit batch (mlirt's own)."""
        return shape if self.implicit_batch is None else Dims(list(shape)[1:])

    @property
    def refittable(self) -> bool:
        """Whether a `Refitter` can give it other weights."""
        return is_refittable(self.engine.plan)

    def exchange(self, engine: Engine) -> None:
        """Be another engine of the same network from now on; contexts follow at their next run (mlirt's own)."""
        self.engine = engine
        self.manifest = engine.plan.manifest

    @property
    def engine_capability(self) -> EngineCapability:
        return EngineCapability.STANDARD

    @property
    def tactic_sources(self) -> int:
        """One bit for each library that the engine calls."""
        called = {kernel.call.library for kernel in self.manifest.kernels if kernel.call is not None}
        return sum(1 << TacticSource[library.upper()] for library in called)

    @property
    def profiling_verbosity(self) -> ProfilingVerbosity:
        return ProfilingVerbosity[str(self.manifest.info.get("profiling_verbosity", "DETAILED"))]

    def get_tensor_name(self, index: int) -> str:
        return self.tensor_names[index]

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        """NONE for a name that is no input or output."""
        return self.tensors[name].mode if name in self.tensors else TensorIOMode.NONE

    def get_tensor_shape(self, name: str) -> Dims:
        """The lengths, -1 where the shapes of a run decide."""
        return self.of_sample(Dims(self.tensor(name).shape))

    def get_tensor_dtype(self, name: str) -> DataType:
        return self.tensor(name).dtype

    def get_tensor_location(self, name: str) -> TensorLocation:
        """HOST for an input that is read, or an output that is delivered, as a shape."""
        return TensorLocation.HOST if self.tensor(name).is_shape else TensorLocation.DEVICE

    def get_tensor_format(self, name: str) -> TensorFormat:
        return self.tensor(name).format

    def get_tensor_format_desc(self, name: str) -> str:
        """What the format is, in TensorRT's words (tensorrt-features.md#5.5)."""
        tensor = self.tensor(name)
        return format_description(tensor.format, tensor.dtype)

    def get_tensor_bytes_per_component(self, name: str) -> int:
        return self.tensor(name).dtype.itemsize

    def get_tensor_components_per_element(self, name: str) -> int:
        """The elements of a vector; -1 where the format has none (tensorrt-features.md#5.4)."""
        return self.tensor(name).components_per_element

    def get_tensor_vectorized_dim(self, name: str) -> int:
        """The dimension whose elements lie in vectors; -1 where the format has none."""
        return self.tensor(name).vectorized_dim

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[Dims]:
        """The smallest, usual and largest shape of an input."""
        self.tensor(name)
        return [self.of_sample(shape) for shape in profile_shapes(self.manifest, profile_index, name)]

    def is_shape_inference_io(self, name: str) -> bool:
        """Whether an input is read, or an output delivered, as a shape (tensorrt-features.md#2.4, 12.22)."""
        return self.tensor(name).is_shape

    def is_debug_tensor(self, name: str) -> bool:
        """Whether an engine beside this one computes a tensor for debug listeners."""
        return name in self.engine.debug_tensors

    def persistent_cache_bytes(self) -> int:
        """The bytes of the device's shared cache; 0 on a CPU (mlirt's own)."""
        if self.engine.target != "cuda":
            return 0
        from mlirt.runtime.cuda_driver import open_driver

        return open_driver().cache_bytes()

    def create_execution_context(self) -> IExecutionContext:
        """A context with profile 0, or with none where inputs are dynamic and another context has it
        (tensorrt-features.md#13.9).

        None, with the reason in the log, where there is too little memory (tensorrt-features.md#18.6).
        """
        try:
            return IExecutionContext(self)
        except MlirtError as error:
            self.reporter.error("cuda_engine.py::createExecutionContext", error)
            return cast("IExecutionContext", None)  # as TensorRT's own signature has it

    def create_execution_context_without_device_memory(self) -> IExecutionContext:
        """A context that runs in `device_memory_size` bytes which `device_memory` is to be set to
        (tensorrt-features.md#13.13).
        """
        return IExecutionContext(self, has_memory=False)

    def create_engine_inspector(self) -> EngineInspector:
        return EngineInspector(self)

    def serialize(self) -> IHostMemory:
        """The plan."""
        return IHostMemory(self.engine.plan.to_bytes())

    def tensor(self, name: str) -> EngineTensor:
        """A tensor; raises `InvalidInputError` for a name that is none."""
        if name not in self.tensors:
            raise InvalidInputError(f"the engine has no tensor {name!r}; its tensors are {', '.join(self.tensors)}")
        return self.tensors[name]
