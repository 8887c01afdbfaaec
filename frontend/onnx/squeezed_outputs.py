"""Tensors whose rank only the run knows: squeezed without axes, while some lengths have no number yet.

Inside the network such a tensor keeps its unknown dimensions. Layers that treat each element alone do not mind, and the
engine drops the dimensions of length 1 from the array that it hands out.
"""

from __future__ import annotations

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.errors import UnsupportedError
from mlirt.frontend.onnx.network import Network


def squeezed_results(net: Network) -> set[int]:
    """The positions of the results that are handed out without dimensions of length 1.

    Raises the refusal of a squeezing node whose result goes into a layer that needs to know its rank.
    """
    found: set[int] = set()
    for value, refusal in net.squeezed:
        found |= _followed(net.ssa(value), refusal)
    return found


def _followed(value: SSAValue, refusal: UnsupportedError) -> set[int]:
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
