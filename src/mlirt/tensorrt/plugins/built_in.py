"""Creators of TensorRT's own plugins, such as EfficientNMS_TRT, for networks with them (tensorrt-features.md#19.2).

A network computes such a plugin by layers, so that it fuses with its neighbours and a plan needs no code of a plugin;
`frontend/built_in_plugins` has the layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.errors import PluginError
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.plugins.field_bytes import bytes_of, fields_of
from mlirt.tensorrt.plugins.fields import PluginField, PluginFieldCollection, PluginFieldType
from mlirt.tensorrt.plugins.plugin import IPluginV2DynamicExt
from mlirt.tensorrt.plugins.registry import IPluginCreator, get_plugin_registry

if TYPE_CHECKING:
    import numpy as np

    from mlirt.tensorrt.logger import ILogger

    Values: TypeAlias = Mapping[str, "np.ndarray[Any, np.dtype[Any]]"]

_REAL, _WHOLE = PluginFieldType.FLOAT32, PluginFieldType.INT32
_NORMALIZATION = {"epsilon": _REAL, "scales": _REAL, "bias": _REAL, "relu": _WHOLE, "alpha": _REAL}
_SUPPRESSION = {
    "score_threshold": _REAL, "iou_threshold": _REAL, "max_output_boxes": _WHOLE, "background_class": _WHOLE,
    "score_activation": _WHOLE, "box_coding": _WHOLE,
}  # fmt: skip

BUILT_IN: Mapping[tuple[str, str], tuple[int, Mapping[str, PluginFieldType]]] = {
    ("Clip_TRT", "1"): (1, {"clipMin": _REAL, "clipMax": _REAL}),
    ("CustomGeluPluginDynamic", "1"): (1, {"type_id": _WHOLE, "bias": _REAL}),
    ("EfficientNMS_TRT", "1"): (4, _SUPPRESSION),
    ("GroupNormalizationPlugin", "1"): (1, {"eps": _REAL, "num_groups": _WHOLE}),
    ("InstanceNormalization_TRT", "1"): (1, _NORMALIZATION),
    ("InstanceNormalization_TRT", "2"): (1, _NORMALIZATION),
    ("LReLU_TRT", "1"): (1, {"negSlope": _REAL}),
    ("Normalize_TRT", "1"): (
        1, {"weights": _REAL, "acrossSpatial": _WHOLE, "channelShared": _WHOLE, "nbWeights": _WHOLE, "eps": _REAL},
    ),
    ("ScatterND", "1"): (1, {}),
}  # fmt: skip
"""By name and version: how many outputs there are, and the fields."""


class BuiltInPlugin(IPluginV2DynamicExt):
    """The fields of one of TensorRT's plugins; a network makes layers of it."""

    def __init__(self, name: str, version: str, fields: PluginFieldCollection) -> None:
        super().__init__()
        self.plugin_type, self.plugin_version = name, version
        self.num_outputs = BUILT_IN[name, version][0]
        self.fields = PluginFieldCollection(fields)

    @property
    def values(self) -> Values:
        """The fields that were given, as arrays by name."""
        import numpy as np

        return {one.name: np.asarray(one.data).reshape(-1) for one in self.fields if one.data is not None}

    def get_output_data_type(self, index: int, input_types: Sequence[DataType], /) -> DataType:
        is_whole = self.plugin_type == "EfficientNMS_TRT" and index in (0, 3)
        return DataType.INT32 if is_whole else input_types[0]

    def serialize(self) -> bytes:
        return bytes_of(self.fields)

    def clone(self) -> BuiltInPlugin:
        made = BuiltInPlugin(self.plugin_type, self.plugin_version, self.fields)
        made.plugin_namespace = self.plugin_namespace
        return made


class BuiltInCreator(IPluginCreator):
    """Makes one of TensorRT's plugins from fields."""

    def __init__(self, name: str, version: str) -> None:
        self.name, self.plugin_version = name, version
        self._types = BUILT_IN[name, version][1]
        self.field_names = PluginFieldCollection(PluginField(field, None, kind) for field, kind in self._types.items())

    def create_plugin(self, name: str, field_collection: PluginFieldCollection, /) -> BuiltInPlugin:
        """Raises `PluginError` for a field that is none of the plugin's."""
        unknown = [one.name for one in field_collection if one.name not in self._types]
        if unknown:
            raise PluginError(
                f"{name}: plugin {self.name} has no field {unknown[0]!r}: expected some of {', '.join(self._types)}"
            )
        return BuiltInPlugin(self.name, self.plugin_version, field_collection)

    def deserialize_plugin(self, name: str, serialized_plugin: bytes, /) -> BuiltInPlugin:
        return BuiltInPlugin(self.name, self.plugin_version, fields_of(serialized_plugin))


def init_libnvinfer_plugins(logger: ILogger | None, namespace: str) -> bool:
    """Register the creators of TensorRT's plugins that are here (`BUILT_IN`), once for each namespace; True."""
    registry = get_plugin_registry()
    for name, version in BUILT_IN:
        if registry.get_creator(name, version, namespace) is None:
            registry.register_creator(BuiltInCreator(name, version), namespace)
    return True
