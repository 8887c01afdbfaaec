"""TensorRT 10's decorators under its names: `import mlirt.plugin as trtp`; and what `shapes=` of `mlirt.op` uses."""

from mlirt.tensorrt.plugins.functions.decorators import (
    AutoTuneCombination,
    aot_impl,
    autotune,
    from_shape_expr,
    impl,
    register,
)
from mlirt.tensorrt.plugins.functions.op_calls import op
from mlirt.tensorrt.plugins.functions.tensors import ShapeExpr, ShapeExprs, Tensor, TensorDesc
from mlirt.tensorrt.plugins.shape_expressions import cdiv, maximum, minimum

__all__ = [
    "AutoTuneCombination",
    "ShapeExpr",
    "ShapeExprs",
    "Tensor",
    "TensorDesc",
    "aot_impl",
    "autotune",
    "cdiv",
    "from_shape_expr",
    "impl",
    "maximum",
    "minimum",
    "op",
    "register",
]
