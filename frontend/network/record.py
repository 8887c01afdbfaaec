"""What a network keeps of a layer; the objects that users hold are views of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

    from mlirt.dialects.weights import WeightStore
    from mlirt.frontend.network.graph import NetworkGraph
    from mlirt.frontend.network.layer import ILayer
    from mlirt.frontend.network.tensor import ITensor
    from mlirt.tensorrt.data_types import DataType
    from mlirt.tensorrt.layer_enums import LayerType


@dataclass(eq=False)
class LayerRecord:
    """A layer. One that was imported has its op as `template`, whose weights are in `store`; `edited` are settings
    that differ from it, and `foreign` properties for which TensorRT has no words.
    """

    graph: NetworkGraph
    layer_class: type[ILayer]
    type: LayerType
    name: str
    inputs: list[ITensor | None]
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    outputs: list[ITensor] = field(default_factory=list["ITensor"])
    foreign: dict[str, Attribute] = field(default_factory=dict[str, "Attribute"])
    template: Operation | None = None
    store: WeightStore | None = None
    edited: set[str] = field(default_factory=set[str])
    precision: DataType | None = None
    output_types: dict[int, DataType] = field(default_factory=dict[int, "DataType"])

    def changed(self) -> None:
        """What was made of the layer so far holds no longer."""
        self.graph.forget(self)

    def view(self) -> ILayer:
        """The layer as its own class shows it."""
        return self.layer_class(self)
