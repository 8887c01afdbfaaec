"""What PyTorch makes of a prepared network: the right answer in float64, and its own error in each precision."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch.utils._python_dispatch import TorchDispatchMode

Array = np.ndarray[Any, np.dtype[Any]]

_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "fp32": torch.float32}


class Peer:
    """A prepared network on `device`, `cuda` or `cpu`; float64 where its operators take it, else float32."""

    def __init__(self, folder: Path, feeds: dict[str, Array], device: str) -> None:
        self._folder, self._feeds, self._device = folder, feeds, device
        self.exact = "float64"
        torch.backends.cudnn.benchmark = False

    def reference(self) -> list[Array]:
        """The outputs in float64."""
        try:
            return self._run(torch.float64, tf32=False)
        except RuntimeError:  # an operator without float64
            self.exact = "float32"
            return self._run(torch.float32, tf32=False)

    def outputs(self, precision: str) -> list[Array]:
        """The outputs in a precision, with the rounding that it allows."""
        return self._run(_TYPES[precision], tf32=precision == "tf32")

    def outputs_of_rounded_operands(self) -> list[Array]:
        """The outputs in float32 with the operands of all products and convolutions rounded to TF32.

        That is what TF32 means. In spite of `allow_tf32` libraries compute some layers, of few channels, in
        float32. Batch normalisations are folded into weights before these are rounded, as in a compiled
        network: half-precision weights that were scaled by 1 / sqrt(1 + 1e-3) are all rounded in the same
        direction.
        """
        _allow_tf32(False)
        return self._of(_folded(self._module(torch.float32)), torch.float32, _RoundedOperands())

    def _run(self, dtype: Any, *, tf32: bool) -> list[Array]:
        _allow_tf32(tf32)
        return self._of(self._module(dtype), dtype, nullcontext())

    def _of(self, module: Any, dtype: Any, mode: Any) -> list[Array]:
        inputs = [self._input(array, dtype) for array in self._feeds.values()]
        with torch.inference_mode(), mode:
            found = module(*inputs)
        outputs = list(found) if isinstance(found, list | tuple) else [found]
        return [one.double().cpu().numpy() if one.is_floating_point() else one.cpu().numpy() for one in outputs]

    def _module(self, dtype: Any) -> Any:
        if (self._folder / "module.pt").exists():
            module = torch.load(self._folder / "module.pt", weights_only=False, map_location="cpu")
            return module.eval().to(self._device, dtype)
        from onnx_to_torch import OnnxModule

        return OnnxModule(onnx.load(self._folder / "model.onnx"), self._device, dtype).eval()

    def _input(self, array: Array, dtype: Any) -> Any:
        tensor = torch.from_numpy(array).to(self._device)
        return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _allow_tf32(allowed: bool) -> None:
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allowed


def _folded(module: Any) -> Any:
    """The module with batch normalisations folded into convolutions; itself where it has none or cannot be traced.

    One without them is left as it is, as tracing takes every argument for given, optional ones too.
    """
    from torch.fx.experimental.optimization import fuse
    from torch.nn.modules.batchnorm import _BatchNorm

    if not any(isinstance(one, _BatchNorm) for one in module.modules()):
        return module
    try:
        return fuse(module)
    except Exception:  # whatever keeps torch.fx from tracing it
        return module


# The operands of products, by the position among the arguments; the others are biases and numbers.
_aten = torch.ops.aten
_OPERANDS = {
    **dict.fromkeys((_aten.convolution, _aten.conv1d, _aten.conv2d, _aten.conv3d), (0, 1)),
    **dict.fromkeys((_aten.linear, _aten.matmul, _aten.mm, _aten.bmm), (0, 1)),
    **dict.fromkeys((_aten.addmm, _aten.baddbmm), (1, 2)),
}


class _RoundedOperands(TorchDispatchMode):
    """Rounds what is multiplied to the nearest float32 with 10 bits of mantissa, ties to even."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        rounded = list(args)
        for place in _OPERANDS.get(func.overloadpacket, ()):
            if rounded[place].dtype == torch.float32:
                rounded[place] = _as_tf32(rounded[place])
        return func(*rounded, **(kwargs or {}))


def _as_tf32(values: Any) -> Any:
    bits = values.contiguous().view(torch.int32)
    rounded = (bits + 0xFFF + (bits >> 13 & 1) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(values), rounded, values)
