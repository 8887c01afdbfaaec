"""IExecutionContext: runs an engine on memory of the caller (tensorrt-features.md#12.7 to 12.15, 13.2 to 13.21)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from operator import index
from typing import TYPE_CHECKING
from weakref import WeakMethod

import numpy as np

from mlirt.errors import InvalidInputError, MlirtError
from mlirt.runtime.api.bound_shapes import NO_PROFILE, BoundShapes
from mlirt.runtime.api.caller_memory import check_is_not_captured, read, write
from mlirt.runtime.api.debug_listener import DebugStates, IDebugListener
from mlirt.runtime.api.indexed_bindings import IndexedBindings
from mlirt.runtime.api.nvtx_ranges import Listener, listener, nvtx_range
from mlirt.runtime.api.repeated_run import RepeatedRun, repeated_run
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.driver_interface import DeviceError
from mlirt.runtime.known_profiles import known_lengths
from mlirt.runtime.loop_times import times_of_layers
from mlirt.runtime.program_cache import ShapeCacheUse
from mlirt.tensorrt.build_enums import ProfilingVerbosity
from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.data_types import numpy_name
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.reported_version import reports_at_least

if TYPE_CHECKING:
    from mlirt.runtime.api.cuda_engine import ICudaEngine
    from mlirt.runtime.api.engine_tensors import EngineTensor
    from mlirt.runtime.api.output_allocator import IOutputAllocator
    from mlirt.runtime.api.profiler import IProfiler
    from mlirt.runtime.context import ExecutionContext

_ALIGNMENT = 256


class IExecutionContext(IndexedBindings, ContextManager):
    """One user of an engine. Addresses are of device memory for an engine on a GPU, of host memory for one on the CPU.

    On a GPU a run is queued, after what is on the caller's stream and before what comes on it next. It is over when
    the call returns on a CPU, with an output allocator, while a profiler is told times, and where the host has to look
    at what the run finds. What is wrong with a run goes to the log, and the call returns False.
    """

    def __init__(self, engine: ICudaEngine, *, has_memory: bool = True) -> None:
        self.engine = engine
        self.has_memory = has_memory
        self.reporter = engine.reporter.of_its_own()
        self._begin_settings()
        self.profiler: IProfiler | None = None
        self._made_for = engine.engine
        self._event = 0
        self._runs = 0
        self._made: ExecutionContext | None = None
        if has_memory:
            _ = self._context
        values = WeakMethod(self._shape_values)  # no cycle: a context gives its profile back once nothing refers to it
        self._shapes = BoundShapes(engine.manifest, engine.tensors, engine.size_program, lambda: _called(values))
        self._shapes.profile = 0 if engine.profile_users.claim(self, 0) else NO_PROFILE
        self._addresses: dict[str, int] = {}
        self._arrays: dict[str, np.ndarray] = {}
        self._values: dict[str, np.ndarray] = {}
        self._allocators: dict[str, IOutputAllocator] = {}
        self._debug = DebugStates(engine.engine.debug_tensors)
        self._last_feeds: Mapping[str, np.ndarray] | None = None
        self._last_addresses: dict[str, int] = {}
        self._repeated: RepeatedRun | None = None
        self.fix_attributes()

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if not name.startswith("_"):
            self._repeated = None

    @property
    def _context(self) -> ExecutionContext:
        """The context that runs: another one once the engine has other weights, or this one other memory."""
        if self._made is None or self._made_for is not self.engine.engine:
            before, self._made_for = self._made, self.engine.engine
            self._made = self._made_for.create_execution_context(keeps_state=False, memory=self._memory())
            self._made.runs = self._runs if before is None else before.runs
            if self._event:
                self._made.set_input_consumed_event(self._event)
        return self._made

    def take_other_memory(self) -> None:
        """Leave the memory at once, and take what the settings say when the next run is made (mlirt's own)."""
        self._runs, self._made = 0 if self._made is None else self._made.runs, None

    @property
    def shape_cache(self) -> ShapeCacheUse:
        """How many programs are kept for shapes that come again, and their bytes (mlirt's own)."""
        return self._context.shape_cache

    @property
    def active_optimization_profile(self) -> int:
        """The number of the profile; -1 where profile 0 had another context when this one was created."""
        return self._shapes.profile

    @active_optimization_profile.setter
    def active_optimization_profile(self, profile: int) -> None:
        deprecated("set_optimization_profile_async")
        self.reporter.warning("setOptimizationProfile is deprecated: use setOptimizationProfileAsync instead.")
        self.set_optimization_profile_async(profile, 0)

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        """Check shapes against another profile from now on; those that it does not allow are to be set again.

        False for a profile that there is not, or that another context of the engine uses.
        """
        if not 0 <= profile_index < self.engine.num_optimization_profiles:
            return self._failed("setOptimizationProfileAsync", f"there is no optimization profile {profile_index}")
        if not self.engine.profile_users.claim(self, profile_index):
            return self._failed(
                "setOptimizationProfileAsync",
                f"Profile {profile_index} has been chosen by another IExecutionContext. "
                "Use another profileIndex or destroy the IExecutionContext that use this profile.",
            )
        self._shapes.choose_profile(profile_index)
        self._repeated = None
        return True

    def set_input_shape(self, name: str, shape: Iterable[int]) -> bool:
        """The shape of an input in the next runs; False where the engine or the profile does not allow it."""
        lengths = tuple(index(length) for length in shape)
        if lengths != self._shapes.given(name):
            self._repeated = None
        try:
            self._shapes.set(name, lengths)
        except MlirtError as error:
            return self._failed("setInputShape", error)
        return True

    def get_tensor_shape(self, name: str) -> Dims:
        """The lengths, as far as the shapes of the inputs determine them; -1 for the others."""
        self.engine.tensor(name)
        return self.engine.of_sample(self._shapes.shape_of(name))

    def get_tensor_strides(self, name: str) -> Dims:
        """Elements from one position to the next, for each axis; vectors where a format has some
        (tensorrt-features.md#5.4).
        """
        return self.engine.tensor(name).strides(self._shapes.shape_of(name))

    def symbol_values(self) -> dict[str, int]:
        """What the symbols of dynamic dimensions stand for, once all shapes are set (mlirt's own)."""
        return self._shapes.symbols()

    def infer_shapes(self) -> list[str]:
        """The inputs whose shapes, or whose values as shapes, are still to be set, or forbidden
        (tensorrt-features.md#12.13).
        """
        return [*self._shapes.missing(), *self._unread_shapes(), *self._forbidden_values(self._addresses)]

    def _unread_shapes(self) -> list[str]:
        """The inputs that are read as shapes and have no memory yet."""
        return [one.name for one in self._read_as_shapes if not self._addresses.get(one.name)]

    @property
    def _read_as_shapes(self) -> list[EngineTensor]:
        return [one for one in self.engine.tensors.values() if one.shape_values is not None]

    def _shape_values(self) -> dict[str, list[int]]:
        """What the inputs that sizes follow from hold now, where they have memory of the host and a shape."""
        tensors = [self.engine.tensors[name] for name in self.engine.size_program.inputs if name in self.engine.tensors]
        is_host = self.engine.engine.target != "cuda"
        of_host = [one for one in tensors if is_host or one.shape_values is not None]
        return {one.name: values for one in of_host if (values := self._values_at(one, self._addresses))}

    def _values_at(self, tensor: EngineTensor, addresses: Mapping[str, int]) -> list[int]:
        shape = self._shapes.given(tensor.name)
        if shape is None or not addresses.get(tensor.name):
            return []
        found = read("cpu", addresses[tensor.name], np.dtype(numpy_name(tensor.dtype)), shape, 0)
        return [int(value) for value in found.reshape(-1).tolist()]

    def _forbidden_values(self, addresses: Mapping[str, int]) -> dict[str, MlirtError]:
        """The inputs that hold values which the profile does not allow, and why (tensorrt-features.md#12.12)."""
        found: dict[str, MlirtError] = {}
        for one in self._read_as_shapes:
            try:
                if addresses.get(one.name) and self._shapes.given(one.name) is not None:
                    self._shapes.check_values(one, self._values_at(one, addresses))
            except InvalidInputError as error:
                found[one.name] = error
        return found

    @property
    def all_binding_shapes_specified(self) -> bool:
        return not self._shapes.missing()

    @property
    def all_shape_inputs_specified(self) -> bool:
        return not self._unread_shapes()

    def get_max_output_size(self, name: str) -> int:
        """The bytes that an output takes at most, as far as the shapes of the inputs determine it; else -1.

        Of lengths that only the data tell it is the largest that they may have (tensorrt-features.md#12.14).
        """
        tensor = self.engine.tensor(name)
        lengths = self._shapes.stored_shape(name)
        if -1 in lengths:
            lengths = self._shapes.largest_shape(name)
        return -1 if -1 in lengths else int(np.prod(lengths, dtype=np.int64)) * tensor.dtype.itemsize

    def set_tensor_address(self, name: str, memory: int | np.ndarray) -> bool:
        """Where a tensor lies; for an engine on the CPU a C-contiguous NumPy array will do (mlirt's own)."""
        if name not in self.engine.tensors:
            return self._failed("setTensorAddress", f"the engine has no tensor {name!r}")
        if isinstance(memory, np.ndarray):
            if not memory.flags.c_contiguous or self.engine.engine.target == "cuda":
                return self._failed("setTensorAddress", f"{name}: needs a C-contiguous array and an engine on the CPU")
            manifest = self.engine.manifest
            dtype = next(numpy_dtype(one.dtype) for one in (*manifest.inputs, *manifest.outputs) if one.name == name)
            if memory.dtype != dtype:
                return self._failed("setTensorAddress", f"{name}: expected an array of {dtype}, got {memory.dtype}")
            self._arrays[name] = memory
            self._addresses[name] = memory.ctypes.data
            self._repeated = None
            return True
        self._arrays.pop(name, None)
        self._addresses[name] = index(memory)
        return True

    def get_tensor_address(self, name: str) -> int:
        """0 where none is set."""
        self.engine.tensor(name)
        return self._addresses.get(name, 0)

    def set_output_allocator(self, name: str, output_allocator: IOutputAllocator | None) -> bool:
        """Ask an allocator for the memory of an output in each run; None for none."""
        if name not in self.engine.tensors or self.engine.tensor(name).is_input:
            return self._failed("setOutputAllocator", f"the engine has no output {name!r}")
        self._repeated = None
        if output_allocator is None:
            self._allocators.pop(name, None)
        else:
            self._allocators[name] = output_allocator
        return True

    def get_output_allocator(self, name: str) -> IOutputAllocator | None:
        return self._allocators.get(name)

    def set_input_consumed_event(self, event: int) -> bool:
        """Record a CUDA event in each run once the inputs may be changed.

        A run on a CPU is over when its call returns, and nobody has to wait for its event.
        """
        self._event = event
        if self._made is None or self.engine.engine.target != "cuda":
            return True
        return self._context.set_input_consumed_event(event or None)

    def get_input_consumed_event(self) -> int:
        return self._event

    def execute_async_v3(self, stream_handle: int) -> bool:
        """Run on the memory that `set_tensor_address` gave (tensorrt-features.md#13.2).

        An error of the device's own work is told by the next call that waits for it, or is queued behind it (17.17).
        """
        return self._run_on("enqueueV3", self._addresses, stream_handle)

    def _run_on(self, where: str, addresses: dict[str, int], stream: int) -> bool:
        """Run with the engine's GPU current; False, with the reason in the log, where that fails."""
        try:
            if self._runs_again(addresses):
                return True
            with self.engine.engine.device_current():
                self._run(addresses, stream)
                self._tell(addresses, stream)
        except MlirtError as error:
            return self._failed(where, error)
        return True

    def _runs_again(self, addresses: dict[str, int]) -> bool:
        """Make a run like the one before in one call; False, with nothing done, where it is another one."""
        repeated = self._repeated
        if repeated is None or self._ranges() is not None:
            return False
        return repeated.again(self.engine.engine, self._made, addresses)

    if reports_at_least(8, 6):

        def set_aux_streams(self, aux_streams: Sequence[int]) -> None:
            """Take streams for `ICudaEngine.num_aux_streams`, which is 0: none of them is used."""

    def _ranges(self) -> Listener | None:
        return None if self.nvtx_verbosity is ProfilingVerbosity.NONE else listener()

    def _run(self, addresses: dict[str, int], stream: int) -> None:
        self._shapes.check_has_profile()
        missing = self._shapes.missing()
        if missing:
            raise InvalidInputError(f"allInputShapesSpecified(routine): the shape of {missing[0]!r} is not set")
        for name in self.engine.tensor_names:
            if not addresses.get(name) and name not in self._allocators:
                raise InvalidInputError(f"the address of {name!r} is not set")
        self._check_arrays(addresses)
        for error in self._forbidden_values(addresses).values():
            raise error
        if not self.has_memory:
            self._context.others_have_used_the_memory()
        ranges = self._ranges()
        if ranges is None and not self.debug_sync and self._run_at(addresses, stream):
            self._last_feeds, self._last_addresses = None, dict(addresses)
            return
        self._check_is_not_captured(stream)
        places = self._places(addresses)
        kind, feeds = self.engine.engine.target, self._feeds(addresses, stream)
        for name, array in self._found(feeds, ranges).items():
            where = "cpu" if self.engine.tensors[name].is_shape else kind
            if name in self._allocators and name not in places:
                places[name] = self._allocated(name, array.nbytes, addresses)
            write(where, places.get(name, addresses.get(name, 0)), array, stream)
            self._notify(name, array)
        self._last_feeds, self._last_addresses = feeds, {}
        if self.enqueue_emits_profile:
            self.report_to_profiler()
        self._repeated = self._repeatable(addresses, feeds)

    def _repeatable(self, addresses: dict[str, int], feeds: Mapping[str, np.ndarray]) -> RepeatedRun | None:
        """The same run in one call; None where each run has more to be looked at than its arrays."""
        told = self.profiler is not None or self._debug.on or self.debug_sync or self._allocators
        if told or not self.has_memory or self._made is None or self._read_as_shapes:
            return None
        return repeated_run(self.engine, self._made, addresses, feeds, self._shapes.stored_shape)

    def _check_is_not_captured(self, stream: int) -> None:
        """Raise `InvalidInputError` for a run that the host has a part in, on a stream whose work a graph notes."""
        if stream and self.engine.engine.target == "cuda":
            check_is_not_captured(stream)

    def _found(self, feeds: Mapping[str, np.ndarray], ranges: Listener | None) -> Mapping[str, np.ndarray]:
        """The outputs; with `debug_sync`, or ranges, launches are waited for one by one (tensorrt-features.md#13.19,
        17.10).
        """
        if ranges is None and not self.debug_sync:
            return self._context.run(feeds)
        with nvtx_range(ranges, "ExecutionContext::enqueue"):
            return self._context.run_launch_by_launch(feeds, lambda layer: _one_layer(layer, ranges))

    def _feeds(self, addresses: dict[str, int], stream: int) -> dict[str, np.ndarray]:
        """The inputs as arrays of the host."""
        kind = self.engine.engine.target
        feeds: dict[str, np.ndarray] = {}
        for tensor in self.engine.manifest.given_inputs:
            dtype, shape = numpy_dtype(tensor.dtype), self._shapes.stored_shape(tensor.name)
            where = kind if self.engine.tensors[tensor.name].shape_values is None else "cpu"
            feeds[tensor.name] = read(where, addresses.get(tensor.name, 0), dtype, shape, stream)
        return feeds

    def _tell(self, addresses: dict[str, int], stream: int) -> None:
        """Show the debug tensors of a run that has been made."""
        self._debug.tell(self.engine.engine, lambda: self._feeds(addresses, stream), stream)

    def set_debug_listener(self, listener: IDebugListener | None) -> bool:
        """Who is told of the debug tensors whose state is on, behind each run; None for none."""
        self._debug.listener = listener
        return True

    def get_debug_listener(self) -> IDebugListener | None:
        return self._debug.listener

    def set_tensor_debug_state(self, name: str, flag: bool) -> bool:
        """Turn a debug tensor on or off; all are off at first. False for a name that is none."""
        return self._debug.set(name, flag)

    def set_all_tensors_debug_state(self, flag: bool) -> bool:
        """Turn all debug tensors on or off."""
        return all([self._debug.set(name, flag) for name in self._debug.on])

    def get_debug_state(self, name: str) -> bool:
        """Whether a debug tensor is on."""
        return self._debug.on.get(name, False)

    def _check_arrays(self, addresses: dict[str, int]) -> None:
        """Raise `InvalidInputError` where an array of the caller is smaller than its tensor."""
        for name, array in self._arrays.items():
            shape = self._shapes.stored_shape(name)
            if -1 in shape:
                self._shapes.check()
                continue  # data decide
            if addresses.get(name) == array.ctypes.data and array.size < np.prod(shape, dtype=np.int64):
                raise InvalidInputError(f"{name}: the array has {array.size} elements, too few for the shape {shape}")

    def _run_at(self, addresses: dict[str, int], stream: int) -> bool:
        """Queue the run on the device, where nothing else is to be done with it; False where it cannot be queued."""
        target = self.engine.engine.target
        if target != "cuda" or self._allocators or (self.profiler is not None and self.enqueue_emits_profile):
            return False
        inputs, outputs = self.engine.manifest.given_inputs, self.engine.manifest.outputs
        if any(one.shape_output for one in self.engine.tensors.values()):
            return False  # what is delivered as a shape goes to the host's memory
        shapes = [self._shapes.stored_shape(one.name) for one in inputs]
        sources, targets = ([addresses.get(one.name, 0) for one in tensors] for tensors in (inputs, outputs))
        return self._context.run_at(shapes, sources, targets, stream)

    def _places(self, addresses: dict[str, int]) -> dict[str, int]:
        """The memory that allocators give before a run, as far as it is known how much may be needed (12.15, 12.16)."""
        sizes = {name: self.get_max_output_size(name) for name in self._allocators}
        return {name: self._allocated(name, size, addresses) for name, size in sizes.items() if size >= 0}

    def _allocated(self, name: str, size: int, addresses: dict[str, int]) -> int:
        memory = addresses.get(name, 0)
        given = self._allocators[name].reallocate_output(name, memory, max(size, 1), _ALIGNMENT)
        if not given:
            raise InvalidInputError(f"the output allocator gave no memory for {name!r}")
        return int(given)

    def _notify(self, name: str, array: np.ndarray) -> None:
        """Tell an allocator the shape of its output."""
        if name in self._allocators:
            output = next(one for one in self.engine.manifest.outputs if one.name == name)
            self._allocators[name].notify_shape(name, Dims(known_lengths(output, array.shape)))

    def report_to_profiler(self) -> bool:
        """Run the layers of the last run one by one and tell the profiler their times (tensorrt-features.md#17.6 to
        17.8). Of a run that was queued on a GPU, or captured by a graph, the inputs are read where they lay (13.17).
        """
        if self.profiler is None or (self._last_feeds is None and not self._last_addresses):
            return False
        try:
            with self.engine.engine.device_current():
                feeds = self._feeds(self._last_addresses, 0) if self._last_feeds is None else self._last_feeds
                times = self._context.profile(feeds)
        except MlirtError as error:
            return self._failed("reportToProfiler", error)
        for layer, milliseconds in times_of_layers(times, self.engine.engine.layers):
            self.profiler.report_layer_time(layer, milliseconds)
        return True

    def _failed(self, where: str, error: Exception | str) -> bool:
        self.reporter.error(f"execution_context.py::{where}", error)
        return False


@contextmanager
def _one_layer(layer: str, ranges: Listener | None) -> Generator[None]:
    try:
        with nvtx_range(ranges, layer):
            yield
    except DeviceError as error:
        raise DeviceError(f"{layer}: {error}") from error


def _called(method: WeakMethod[Callable[[], dict[str, list[int]]]]) -> dict[str, list[int]]:
    found = method()
    return {} if found is None else found()
