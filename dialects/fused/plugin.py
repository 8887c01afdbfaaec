"""A layer of the user's own, in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Pure

from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.plugin_call import PluginCall

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class PluginOp(PluginCall, FusedOp):
    """What a plugin computes from its inputs; it is called by the host, with the addresses of its tensors.

    C1: the plugin has a name. C2: the state is a row of uint8. C3: formulas name dimensions of the operands.

    Example: `%y = fused.plugin %state, %x {plugin = "Twice", version = "1",
    made = [tensor<?xf32, #trt.dims<["2*x0.0"]>>]} : (tensor<4xui8>, tensor<3xf32>) -> tensor<6xf32>`
    """

    name = "fused.plugin"
    traits = traits_def(Pure())

    def __init__(
        self,
        state: SSAValue,
        inputs: Sequence[SSAValue],
        names: tuple[StringAttr, StringAttr, StringAttr],
        made: ArrayAttr[TensorType[Attribute]],
        results: Sequence[Attribute],
    ):
        """`names` are the plugin's name, version and namespace."""
        properties = dict(zip(("plugin", "version", "namespace"), names, strict=True))
        super().__init__(
            operands=[state, inputs], properties={**properties, "made": made}, result_types=[list(results)]
        )

    def verify_(self) -> None:
        self.check_call()

    def reference(self, *arrays: Array) -> Sequence[Array]:
        return PluginCall.reference(self, *arrays)
