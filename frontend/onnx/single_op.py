"""One ONNX op for a network that does not come from ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from onnx import helper
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, SSAValue

from mlirt.dialects.locations import names
from mlirt.dialects.tensor_types import Tensor
from mlirt.dialects.weights import WeightStore
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.graph_reader import Scope
from mlirt.frontend.onnx.handlers import handler_for
from mlirt.frontend.onnx.node import Node

OPSET = 17


def append_op(
    block: Block,
    store: WeightStore,
    location: LocationAttr,
    op_type: str,
    inputs: Sequence[SSAValue | None],
    attributes: Mapping[str, int],
    fresh_names: list[str],
) -> SSAValue:
    """Append what becomes of an op on these values to a block; its first result.

    `fresh_names` are the names of sizes in the block that only a run can tell; new ones are added to them.
    """
    net = Network(store)
    net.root = net.block = block
    net.location, net.fresh_names = location, fresh_names
    values = [None if value is None else Value(cast("Tensor", value.type), value) for value in inputs]
    given = {name: helper.make_attribute(name, value) for name, value in attributes.items()}
    label = " + ".join(names(location))
    node = Node(net, op_type, label, OPSET, "", values, [""], given, Scope({"": OPSET}, {}))
    handler = handler_for("", op_type, OPSET)
    assert handler is not None
    made = handler(net, node)
    return net.ssa(made if isinstance(made, Value) else made[0])
