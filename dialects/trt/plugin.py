"""A layer of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Pure

from mlirt.dialects.plugin_call import PluginCall
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import Tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class PluginOp(PluginCall, TensorOp):
    """What a plugin computes from its inputs, as a function of them (tensorrt-features.md#1.25, 19.20).

    The plugin is made by the creator that the process has registered for its name, version and namespace, from the
    bytes `state`. `made` are the types of the results; their dimensions are formulas over those of the operands, where
    `x0.1` is dimension 1 of the first tensor behind the state.

    C1: the plugin has a name. C2: the state is a row of uint8. C3: formulas name dimensions of the operands.

    Example: `%y = trt.plugin %state, %x {plugin = "Twice", version = "1",
    made = [tensor<?xf32, #trt.dims<["2*x0.0"]>>]} : (tensor<4xui8>, tensor<3xf32>) -> tensor<6xf32>`
    """

    name = "trt.plugin"
    traits = traits_def(Pure())

    def check(self) -> None:
        self.check_call()

    def infer(self) -> Sequence[Tensor]:
        return self.inferred()

    def reference(self, *arrays: Array) -> Sequence[Array]:
        return PluginCall.reference(self, *arrays)
