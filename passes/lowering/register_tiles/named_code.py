"""Kernels in whose generated text sizes and results have names of their own."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.symbolic import Dim
from mlirt.passes.lowering.lowering import KernelBuilder


class NamedCode:
    """Appends to a kernel."""

    def __init__(self, k: KernelBuilder) -> None:
        self.k = k
        self._sizes: dict[str, SSAValue] = {}

    def size(self, name: str, dim: Dim) -> SSAValue:
        """A size that is one argument of the kernel wherever it is used."""
        if name not in self._sizes:
            self._sizes[name] = self.named(self.k.size(dim), name)
        return self._sizes[name]

    def named(self, value: SSAValue, name: str) -> SSAValue:
        """A value that has a line of its own in the generated text."""
        if value.name_hint is None:
            value.name_hint = name
        return value
