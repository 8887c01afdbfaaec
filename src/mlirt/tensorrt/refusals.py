"""What TensorRT 8.5 has and mlirt has not: each says so when it is made."""

from __future__ import annotations

from typing import Any, ClassVar

from mlirt.errors import UnsupportedError


class _Refused:
    """Raises `UnsupportedError`."""

    INSTEAD: ClassVar[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(f"{type(self).__name__} is not supported: {self.INSTEAD}")


class CaffeParser(_Refused):
    """A parser of a format that nobody writes any more."""

    INSTEAD = "it was removed from TensorRT; convert the model to ONNX"


class UffParser(_Refused):
    """A parser of a format that nobody writes any more."""

    INSTEAD = "it was removed from TensorRT; convert the model to ONNX"
