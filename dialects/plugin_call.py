"""What `trt.plugin` and `fused.plugin` have in common: which plugin, its bytes, and what its results are like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ArrayAttr, StringAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, operand_def, prop_def, var_operand_def, var_result_def

from mlirt.dialects.locations import name_of
from mlirt.dialects.symbolic import Dim, evaluate, substitute, sym, symbols
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, element_type, numpy_dtype, rank, tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

BYTE = element_type("uint8")


def dimension_of(operand: int, axis: int) -> Dim:
    """How the results' types call a dimension of an operand."""
    return sym(f"x{operand}.{axis}")


class PluginCall(IRDLOperation):
    """The plugin is found by name, version and namespace, and made from the bytes `state`.

    `made` has the types of the results, whose dimensions are formulas over those of the operands: `x0.1` is dimension 1
    of operand 0, the state not counted.
    """

    state = operand_def(TensorType)
    inputs = var_operand_def(TensorType)
    plugin = prop_def(StringAttr)
    version = prop_def(StringAttr, default_value=StringAttr("1"))
    plugin_namespace = prop_def(StringAttr, prop_name="namespace", default_value=StringAttr(""))
    made = prop_def(ArrayAttr[TensorType[Attribute]])
    outputs = var_result_def(TensorType)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$state (`,` $inputs^)? attr-dict `:` functional-type(operands, results)"

    def check_call(self) -> None:
        """Raise `VerifyException` where the constraints C1 to C3 do not hold."""
        require(bool(self.plugin.data), f"C1: {self.name} names no plugin")
        is_bytes = rank(self.state.type) == 1 and element_of(self.state.type) == BYTE
        require(is_bytes, f"C2: the state of {self.name} is a row of ui8, not {self.state.type}")
        known = set(self._lengths())
        for made in self.made:
            unknown = sorted({name for dim in dims(made) for name in symbols(dim)} - known)
            require(not unknown, f"C3: {', '.join(unknown)} is no dimension of an operand of {self.name}")

    def _lengths(self) -> dict[str, Dim]:
        return {
            str(dimension_of(operand, axis)): length
            for operand, value in enumerate(self.inputs)
            for axis, length in enumerate(dims(value.type))
        }

    def inferred(self) -> list[Tensor]:
        """The types of the results for the operands at hand."""
        lengths = self._lengths()
        return [tensor(element_of(made), [substitute(dim, lengths) for dim in dims(made)]) for made in self.made]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        """What the plugin itself computes, on the host."""
        from mlirt.tensorrt.plugins.calls import restored
        from mlirt.tensorrt.plugins.host_call import run_on_host

        state, *inputs = arrays
        layer, names = name_of(self), (self.plugin.data, self.version.data, self.plugin_namespace.data)
        lengths = {
            str(dimension_of(k, axis)): length for k, one in enumerate(inputs) for axis, length in enumerate(one.shape)
        }
        results: list[tuple[list[int], Any]] = [
            ([evaluate(dim, lengths) for dim in dims(made)], numpy_dtype(element_of(made))) for made in self.made
        ]
        return run_on_host(layer, restored(layer, *names, state.tobytes()), inputs, results)


def types_of(made: Sequence[tuple[Attribute, Sequence[Dim]]]) -> ArrayAttr[TensorType[Attribute]]:
    """The property `made` for element types and dimensions."""
    return ArrayAttr(tensor(element, lengths) for element, lengths in made)
