"""Kernels in whose generated text sizes and results have names of their own."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.tactics.lowering import KernelBuilder


class NamedCode:
    """Appends to a kernel."""

    def __init__(self, k: KernelBuilder) -> None:
        self.k = k
        k.keeps_names = True

    def size(self, name: str, dim: Dim) -> SSAValue:
        """A size that is one argument of the kernel wherever it is used."""
        return self.k.named_size(name, dim)

    def named(self, value: SSAValue, name: str) -> SSAValue:
        """A value that has a line of its own in the generated text."""
        if value.name_hint is None:
            value.name_hint = name
        return value
