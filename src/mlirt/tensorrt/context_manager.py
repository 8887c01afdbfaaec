"""`with` for the objects of old scripts: TensorRT 8 warns that it does nothing (tensorrt-features.md#3.18)."""

from __future__ import annotations

from typing import Self

from mlirt.tensorrt.deprecation import deprecated


class ContextManager:
    """An object that a `with` statement takes and leaves as it is."""

    def __enter__(self) -> Self:
        deprecated("del")
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is to be given back."""
