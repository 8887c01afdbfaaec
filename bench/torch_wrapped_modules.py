"""Modules whose calls take and give more than tensors, wrapped so that they do; torchvision without its operators."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import nn


class Named(nn.Module):
    """A network of transformers with fixed keywords, of whose outputs one is wanted."""

    def __init__(self, module: Any, output: str, **fixed: Any) -> None:
        super().__init__()
        self.module, self._output, self._fixed = module, output, fixed

    def forward(self, x: Any) -> Any:
        """The output."""
        return self.module(x, **self._fixed)[self._output]


class Packed(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Any) -> Any:
        """The mixed sequence and the weights."""
        return self.module(x, x, x)


class Stepped(nn.Module):
    """A recurrent cell over three steps of a sequence."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Any) -> Any:
        """The last state."""
        state = None
        for step in range(3):
            state = self.cell(x[:, step], state)
        return state


@cache
def with_operators() -> Any:
    """torchvision imports where its operators cannot be loaded, too: PyPI builds them for the CUDA build of PyTorch.

    Its classification networks call none of them; it only says at import which shapes they give.
    """
    library = torch.library.Library("torchvision", "FRAGMENT")
    try:
        import_module("torchvision")
    except RuntimeError:
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library
