"""What TensorRT 8.5 has and mlirt has not: each says so when it is made."""

from __future__ import annotations

from typing import Any, ClassVar

from mlirt.errors import UnsupportedError
from mlirt.tensorrt.logger import ILogger, Severity


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


class IGpuAllocator(_Refused):
    """Memory for engines from the user."""

    INSTEAD = "memory comes from the driver"


class IPluginV2(_Refused):
    """A layer of the user's own."""

    INSTEAD = "there are no plugins; express the layer by others"


class IPluginV2Ext(IPluginV2):
    """A layer of the user's own."""


class IPluginCreator(IPluginV2):
    """What makes layers of the user's own."""


class PluginField(_Refused):
    """A parameter of a plugin."""

    INSTEAD = "there are no plugins; express the layer by others"


class PluginFieldCollection(PluginField):
    """The parameters of a plugin."""


def get_plugin_registry() -> Any:
    """Raises `UnsupportedError`."""
    raise UnsupportedError("there are no plugins; express the layer by others")


def init_libnvinfer_plugins(logger: ILogger | None, namespace: str) -> bool:
    """False, with a warning: there are no plugins to register, and a network that needs none goes on."""
    if logger is not None:
        logger.log(Severity.WARNING, "there are no plugins to register")
    return False
