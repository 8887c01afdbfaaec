"""Writes kernels for NVIDIA GPUs as Python source for numba-cuda."""

from mlirt.codegen.numba_cuda.emit import emit, sources_of

__all__ = ["emit", "sources_of"]
