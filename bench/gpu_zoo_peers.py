"""What PyTorch makes of a prepared network: the right answer in float64, and its own error in each precision."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

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

    def _run(self, dtype: Any, *, tf32: bool) -> list[Array]:
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32
        module = self._module(dtype)
        inputs = [self._input(array, dtype) for array in self._feeds.values()]
        with torch.inference_mode():
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
