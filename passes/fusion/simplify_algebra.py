"""Rewrites layers by algebra where that saves work: equations in an e-graph, and the cheapest of equal layers."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.dialects.fast_math import DEFAULT, read_rights
from mlirt.dialects.layer_precisions import LAYER_PRECISIONS, PRECISION
from mlirt.dialects.pass_plugins import active
from mlirt.dialects.tensor_names import RANGES
from mlirt.passes.fusion import algebra
from mlirt.passes.options import option
from mlirt.passes.remarks import declined
from mlirt.passes.rules.equality import Equation, MachineRates, Saturation

_SAID_OF_LAYERS = {RANGES, LAYER_PRECISIONS, PRECISION}


@dataclass(frozen=True)
class SimplifyAlgebraPass(ModulePass):
    """Replace layers by equal ones that take fewer launches, bytes or operations, as far as fast math permits it.

    The equations are in `passes/fusion/algebra/`, and in plugins. Where one holds, the layers around become an e-graph,
    to which all equations add what is equal; the cheapest layers by the cost model of `device` take their place. What a
    right that is not granted would save is said in a remark: `--fastMath`, `fast_math=`.

    Before:

        %a = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>
        %b = trt.elementwise prod %a, %two : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
        %c = trt.elementwise prod %b, %three : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
        %y = trt.unary abs %c : (tensor<4xf32>) -> tensor<4xf32>

    After:

        %a = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>
        %y = trt.elementwise prod %a, %six : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>

    A network that says in which precision its layers compute, or which ranges its tensors have, stays as it is.
    """

    name = "simplify-algebra"

    fast_math: tuple[str, ...] = DEFAULT
    target: str = option("cuda", one_of=("cpu", "cuda"))
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        said = {name for inner in op.walk() for name in inner.attributes.keys() & _SAID_OF_LAYERS}
        if said:
            return declined(op, f"the network says {', '.join(sorted(said))} of its own layers and tensors")
        brought = [one for plugin in active() for one in plugin.objects(Equation)]
        rates = MachineRates.of(self.target, self.device)
        Saturation([*equations(), *brought], ctx, rates, read_rights(self.fast_math)).run(op)


@cache
def equations() -> tuple[Equation, ...]:
    """Those in the tables `EQUATIONS` of the files in `algebra/`."""
    files = pkgutil.iter_modules(algebra.__path__)
    modules = [import_module(f"{algebra.__name__}.{file.name}") for file in files]
    return tuple(one for module in modules for one in module.EQUATIONS)
