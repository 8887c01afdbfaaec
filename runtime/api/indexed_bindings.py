"""Execution contexts by indices of bindings and by batches, as TensorRT had them before names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirt.errors import MlirtError, UnsupportedError
from mlirt.runtime.api.context_settings import ContextSettings
from mlirt.tensorrt.data_types import numpy_name
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.dims import Dims

if TYPE_CHECKING:
    from mlirt.runtime.api.bound_shapes import BoundShapes


class IndexedBindings(ContextSettings):
    """Runs, shapes and values by index, in terms of a context's calls by name."""

    _shapes: BoundShapes
    _values: dict[str, np.ndarray]
    """The values of inputs that are read as shapes, by name, where they were set by index."""

    @abstractmethod
    def set_input_shape(self, name: str, shape: Iterable[int]) -> bool: ...

    @abstractmethod
    def get_tensor_shape(self, name: str) -> Dims: ...

    @abstractmethod
    def get_tensor_strides(self, name: str) -> Dims: ...

    @abstractmethod
    def set_tensor_address(self, name: str, memory: int | np.ndarray) -> bool: ...

    @abstractmethod
    def set_input_consumed_event(self, event: int) -> bool: ...

    @abstractmethod
    def get_input_consumed_event(self) -> int: ...

    @abstractmethod
    def _run_on(self, where: str, addresses: dict[str, int], stream: int) -> bool: ...

    @abstractmethod
    def _failed(self, where: str, error: Exception | str) -> bool: ...

    def execute_v2(self, bindings: Sequence[int]) -> bool:
        """Run on a list of addresses, inputs first, in the order of the engine (tensorrt-features.md#13.3)."""
        return self.execute_async_v2(bindings, 0)

    def execute_async_v2(self, bindings: Sequence[int], stream_handle: int, input_consumed: Any = None) -> bool:
        """As `execute_v2`; `input_consumed` is an event of this run (tensorrt-features.md#13.12)."""
        if self.engine.implicit_batch is not None:
            return self._failed("enqueueV2", "the batch of the engine is implicit: use execute or execute_async")
        if not input_consumed:
            return self._run_bindings("enqueueV2", bindings, stream_handle)
        with self._consumed_event(input_consumed):
            return self._run_bindings("enqueueV2", bindings, stream_handle)

    @contextmanager
    def _consumed_event(self, event: Any) -> Generator[None]:
        """Let one run record another event than the context's, where one is given."""
        own = self.get_input_consumed_event()
        if event:
            self.set_input_consumed_event(int(event))
        try:
            yield
        finally:
            if event:
                self.set_input_consumed_event(own)

    def _run_bindings(self, where: str, bindings: Sequence[int], stream_handle: int) -> bool:
        names = self.engine.tensor_names
        if len(bindings) < len(names):
            return self._failed(where, f"expected {len(names)} bindings, got {len(bindings)}")
        first = self._shapes.profile * len(names) if len(bindings) >= len(self.engine) else 0
        given = dict(zip(names, map(int, bindings[first:]), strict=False))
        given |= {name: array.ctypes.data for name, array in self._values.items()}
        return self._run_on(where, given, stream_handle)

    def execute(self, batch_size: int, bindings: Sequence[int]) -> bool:
        """Run a batch of an engine with an implicit one; False, with an error in the log, for others and for batches
        that it does not take (tensorrt-features.md#13.4).
        """
        deprecated("execute_v2")
        return self._run_batch("execute", "execute_v2", batch_size, bindings, 0)

    def execute_async(
        self, batch_size: int, bindings: Sequence[int], stream_handle: int, input_consumed: Any = None
    ) -> bool:
        """The same on a stream."""
        deprecated("execute_async_v2")
        with self._consumed_event(input_consumed):
            return self._run_batch("enqueue", "execute_async_v3", batch_size, bindings, stream_handle)

    def _run_batch(self, where: str, instead: str, size: int, bindings: Sequence[int], stream: int) -> bool:
        most = self.engine.implicit_batch
        if most is None:
            return self._failed(where, UnsupportedError(f"the batch of the engine is explicit: use {instead}"))
        if not 0 < size <= most:
            return self._failed(
                where,
                "Parameter check failed, condition: batchSize > 0 && batchSize <= mEngine.getMaxBatchSize(). "
                f"Note: Batch size was: {size}, but engine max batch size was: {most}",
            )
        for tensor in self.engine.tensors.values():
            if tensor.is_dynamic_input and not self.set_input_shape(tensor.name, (size, *list(tensor.shape)[1:])):
                return False
        return self._run_bindings(where, bindings, stream)

    def get_strides(self, binding: int) -> Dims:
        deprecated("get_tensor_strides")
        return self.get_tensor_strides(self.engine.tensor_at(binding))

    def set_shape_input(self, binding: int, shape: Sequence[int]) -> bool:
        """The values of an input that is read as a shape (tensorrt-features.md#12.12); False where the profile forbids
        them.
        """
        deprecated("set_tensor_address")
        tensor = self.engine.tensor(self.engine.tensor_at(binding))
        values = np.array(shape, numpy_name(tensor.dtype))
        try:
            self._shapes.check_values(tensor, values.reshape(-1).tolist())
        except MlirtError as error:
            return self._failed("setInputShapeBinding", error)
        self._values[tensor.name] = values
        return self.set_tensor_address(tensor.name, values.ctypes.data)

    def get_shape(self, binding: int) -> list[int]:
        """The values that were set for an input that is read as a shape; empty where none were."""
        deprecated("get_tensor_address")
        values = self._values.get(self.engine.tensor_at(binding))
        return [] if values is None else values.reshape(-1).tolist()

    def set_binding_shape(self, binding: int, shape: Iterable[int]) -> bool:
        """`set_input_shape` by an index; one of another profile stands for that of the active one
        (tensorrt-features.md#12.17).
        """
        deprecated("set_input_shape")
        self._check_binding(binding)
        return self.set_input_shape(self.engine.tensor_at(binding), shape)

    def _check_binding(self, binding: int) -> None:
        count, profile = len(self.engine.tensor_names), max(self._shapes.profile, 0)
        if binding // count != profile:
            self.reporter.warning(
                f"binding {binding} belongs to optimization profile {binding // count}, and {profile} is active: "
                f"binding {profile * count + binding % count} is taken"
            )

    def get_binding_shape(self, binding: int) -> Dims:
        deprecated("get_tensor_shape")
        self._check_binding(binding)
        return self.get_tensor_shape(self.engine.tensor_at(binding))
