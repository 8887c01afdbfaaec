"""Tensors whose rank only the run knows: squeezed without axes, while some lengths have no number yet.

Inside the network such a tensor keeps its unknown dimensions. Layers that treat each element alone do not mind, and the
engine drops the dimensions of length 1 from the array that it hands out. Where another layer reads it, the network is
made for unknown lengths that all are 1, or of which none is.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.require import RequireOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.assumptions import RankConflict
from mlirt.frontend.onnx.node import Node


def squeezed_results(net: Network) -> set[int]:
    """The positions of the results that are handed out without dimensions of length 1.

    Raises `RankConflict` for a squeezing node whose result goes into a layer that needs to know its rank.
    """
    found: set[int] = set()
    for name, value, refusal in net.squeezed:
        found |= _followed(net.ssa(value), RankConflict(name, refusal))
    return found


def squeezed_for_certain(net: Network, node: Node, x: Value, are_one: bool) -> Value:
    """`x` without dimensions of length 1, where the unknown lengths all are 1, or none is; the run checks it."""
    result, one = x, net.constant(np.array(1, np.int64))
    for axis in (axis for axis, dim in enumerate(x.dims) if not isinstance(dim, int)):
        is_one = layers.binary(net, "equal", layers.length_of(net, x, axis), one)
        holds = is_one if are_one else layers.unary(net, "not", is_one)
        message = f"{node.label}: the engine was built for an axis {axis} whose length is{'' if are_one else ' not'} 1"
        net.append_at(RequireOp(net.ssa(holds), message))
        result = layers.along(net, result, axis, 0, 1) if are_one else result
    return layers.squeeze(net, result, [axis for axis, dim in enumerate(result.dims) if dim == 1])


def _followed(value: SSAValue, refusal: RankConflict) -> set[int]:
    found: set[int] = set()
    for use in value.uses:
        user = use.operation
        if isinstance(user, ReturnOp):
            found.add(use.index)
        elif isinstance(user, ActivationOp | UnaryOp | IdentityOp) or _is_with_a_number(user, value):
            found |= _followed(user.results[0], refusal)
        else:
            raise refusal
    return found


def _is_with_a_number(op: Operation, value: SSAValue) -> bool:
    """Whether an op combines each element of a value with the one element of a constant."""
    if not isinstance(op, ElementwiseOp):
        return False
    others = [operand for operand in op.operands if operand is not value]
    return all(isinstance(other.owner, ConstantOp) and set(dims(other.type)) <= {1} for other in others)
