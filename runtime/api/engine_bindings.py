"""The old names of an engine's methods, which take an index or a name (tensorrt-features.md#3.18, 12.17).

Each profile has bindings of its own: tensor k of profile p has the index p * (number of tensors) + k.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from mlirt.runtime.api.engine_tensors import EngineTensor
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.run_enums import TensorFormat, TensorLocation

Binding = int | str


class EngineBindings(ABC):
    """Tensors as bindings, one for each profile."""

    tensor_names: list[str]

    @property
    @abstractmethod
    def num_optimization_profiles(self) -> int: ...

    @abstractmethod
    def tensor(self, name: str) -> EngineTensor: ...

    @abstractmethod
    def get_tensor_location(self, name: str) -> TensorLocation: ...

    @abstractmethod
    def get_tensor_format(self, name: str) -> TensorFormat: ...

    @abstractmethod
    def get_tensor_format_desc(self, name: str) -> str: ...

    @abstractmethod
    def get_tensor_shape(self, name: str) -> Dims: ...

    @abstractmethod
    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[Dims]: ...

    @property
    def num_bindings(self) -> int:
        deprecated("num_io_tensors")
        return len(self)

    def get_binding_name(self, index: int) -> str:
        """The tensor's name; `x [profile 1]` where the binding is not of the first profile."""
        deprecated("get_tensor_name")
        return self._binding_names()[index]

    def get_binding_index(self, name: str) -> int:
        """-1 for a name that is no binding."""
        deprecated("get_tensor_name")
        names = self._binding_names()
        return names.index(name) if name in names else -1

    def _binding_names(self) -> list[str]:
        later = range(1, self.num_optimization_profiles)
        return self.tensor_names + [f"{name} [profile {profile}]" for profile in later for name in self.tensor_names]

    def tensor_at(self, index: int) -> str:
        """The name of the tensor of a binding; raises `IndexError` where there is none."""
        return (self.tensor_names * self.num_optimization_profiles)[index]

    def get_binding_shape(self, index: Binding) -> Dims:
        deprecated("get_tensor_shape")
        return self.get_tensor_shape(self._bound(index).name)

    def get_binding_dtype(self, index: Binding) -> DataType:
        deprecated("get_tensor_dtype")
        return self._bound(index).dtype

    def binding_is_input(self, index: Binding) -> bool:
        deprecated("get_tensor_mode")
        return self._bound(index).is_input

    def get_location(self, index: Binding) -> TensorLocation:
        deprecated("get_tensor_location")
        return self.get_tensor_location(self._bound(index).name)

    def is_shape_binding(self, binding: int) -> bool:
        """Whether an input is read, or an output delivered, as a shape."""
        deprecated("is_shape_inference_io")
        return self._bound(binding).is_shape

    def is_execution_binding(self, binding: int) -> bool:
        """True: all tensors are data."""
        deprecated("is_shape_inference_io")
        self._bound(binding)
        return True

    def get_binding_bytes_per_component(self, index: Binding) -> int:
        deprecated("get_tensor_bytes_per_component")
        return self._bound(index).dtype.itemsize

    def get_binding_components_per_element(self, index: Binding) -> int:
        """The elements of a vector; -1 where the format has none."""
        deprecated("get_tensor_components_per_element")
        return self._bound(index).components_per_element

    def get_binding_vectorized_dim(self, index: Binding) -> int:
        """The dimension whose elements lie in vectors; -1 where the format has none."""
        deprecated("get_tensor_vectorized_dim")
        return self._bound(index).vectorized_dim

    def get_binding_format(self, index: Binding) -> TensorFormat:
        deprecated("get_tensor_format")
        return self.get_tensor_format(self._bound(index).name)

    def get_binding_format_desc(self, index: Binding) -> str:
        deprecated("get_tensor_format_desc")
        return self.get_tensor_format_desc(self._bound(index).name)

    def get_profile_shape(self, profile_index: int, binding: Binding) -> list[Dims]:
        deprecated("get_tensor_profile_shape")
        return self.get_tensor_profile_shape(self._bound(binding).name, profile_index)

    def get_profile_shape_input(self, profile_index: int, binding: Binding) -> list[list[int]]:
        """The smallest, usual and largest values of an input that is read as a shape; empty for others."""
        deprecated("get_tensor_profile_shape")
        values = self._bound(binding).shape_values or []
        return [list(one) for one in values[profile_index]] if 0 <= profile_index < len(values) else []

    def _bound(self, binding: Binding) -> EngineTensor:
        return self.tensor(binding if isinstance(binding, str) else self.tensor_at(binding))

    def __getitem__(self, index: Binding) -> str | int:
        """The name of an index, the index of a name."""
        deprecated("get_tensor_name")
        names = self._binding_names()
        return names.index(index) if isinstance(index, str) else names[index]

    def __len__(self) -> int:
        return len(self.tensor_names) * self.num_optimization_profiles
