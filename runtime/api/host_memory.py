"""IHostMemory: bytes that belong to the library, such as a serialized engine."""

from __future__ import annotations

from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.data_types import DataType


class IHostMemory(bytes, ContextManager):
    """Bytes, to be written to a file or given to `Runtime.deserialize_cuda_engine`."""

    @property
    def nbytes(self) -> int:
        return len(self)

    @property
    def dtype(self) -> DataType:
        return DataType.INT8
