"""PyTorch's data types and tensors as element types and arrays, which share the tensor's memory."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from mlirt.dialects.tensor_types import element_type, numpy_dtype
from mlirt.errors import UnsupportedError
from mlirt.frontend.importing.number_arrays import Array

# NumPy has no name for these: their bytes are read as integers and seen as ml_dtypes' types.
_BY_BYTES = {"bfloat16": torch.int16, "float8_e4m3fn": torch.uint8}


def element_of_dtype(dtype: Any) -> str:
    """The name of an element type; raises `UnsupportedError` for those that networks do not have."""
    name = str(dtype).removeprefix("torch.")
    try:
        element_type(name)
    except KeyError:
        raise UnsupportedError(f"tensors of {dtype} are not supported yet") from None
    return name


def dtype_of_element(name: str) -> Any:
    """PyTorch's data type for the name of an element type."""
    return getattr(torch, name)


def array_of(tensor: Any) -> Array:
    """The elements of a tensor, in its own memory where that is the CPU's; sparse ones raise `UnsupportedError`."""
    if tensor.layout != torch.strided:
        raise UnsupportedError(f"tensors of the layout {tensor.layout} are not supported yet; use to_dense()")
    plain = tensor.detach()
    plain = plain if plain.device.type == "cpu" else plain.cpu()
    name = element_of_dtype(plain.dtype)
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    if name in _BY_BYTES:
        return plain.contiguous().view(_BY_BYTES[name]).numpy().view(numpy_dtype(element_type(name)))
    return plain.numpy()


def tensor_of(array: Array) -> Any:
    """A tensor in an array's memory; PyTorch has no tensors that cannot be written, so those are copied."""
    array = array if array.flags.writeable else array.copy()
    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(array)
    name = array.dtype.name
    if name in _BY_BYTES:
        integers = np.int16 if name == "bfloat16" else np.uint8
        return torch.from_numpy(array.view(integers)).view(getattr(torch, name))
    return torch.from_numpy(array)
