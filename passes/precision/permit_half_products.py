"""Lets products compute with halves on processors that add products of halves to float32."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f16, f32
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.kernel.tile_products import HALF_PRODUCTS, NEON_BITS
from mlirt.dialects.layer_precisions import WIDE, LayerPrecisions
from mlirt.dialects.locations import name_of
from mlirt.dialects.shared_attributes import boolean
from mlirt.dialects.symbolic import product as product_of
from mlirt.dialects.tensor_types import byte_width, dims, element_count, element_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightsAttr, WeightStore
from mlirt.kernels.lib.cpu.register_tiles.half_products import pay_as_halves
from mlirt.passes.options import option
from mlirt.passes.precision.half_constants import loses_weight
from mlirt.passes.precision.weight_issues import WeightIssues


@dataclass(frozen=True)
class PermitHalfProductsPass(ModulePass):
    """Let matrix products by constant weights compute with halves, where a processor adds products of halves to float32
    (`features` has the instruction for it, FMLAL, which is one of NEON) and weights are better read as halves.

    Weights are rounded to half precision, unless it holds them only coarsely; what they multiply may be rounded, too.
    Sums stay float32, and so does what layers hand on. That pays with few rows or very large weights, as memory is what
    such products wait for; others keep float32, and so does a layer that is asked for it (`trt.layer_precisions`,
    `trt.precision`).

    Before: `%y = fused.matmul %x, %w : (tensor<1x512xf32>, tensor<512x256xf32>) -> tensor<1x256xf32> {..}`
    After: `%y = fused.matmul %x, %w16 {may_round = true} : ..`, where `%w16` has the numbers of halves
    """

    name = "permit-half-products"

    vector_bits: int = option(NEON_BITS, at_least=32)
    features: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.vector_bits != NEON_BITS or HALF_PRODUCTS.isdisjoint(self.features):
            return
        asked, issues, store = LayerPrecisions(op), WeightIssues(), weights_of(ctx)
        for product in [one for one in op.walk() if isinstance(one, MatmulOp)]:
            if asked.of(product) in WIDE or not _pays(product):
                continue
            _round_weights(product, store, issues)
            weights = _weights(product)
            if weights is not None and store.are_halves(weights):
                product.may_round = boolean(True)
        issues.warn()


def _weights(product: MatmulOp) -> WeightsAttr | None:
    """The right operand, where it is a large constant, and both are of float32."""
    owner = product.rhs.owner
    elements = {element_of(product.lhs.type), element_of(product.rhs.type)}
    if not isinstance(owner, ConstantOp) or elements != {f32}:
        return None
    return owner.value if isinstance(owner.value, WeightsAttr) else None


def _pays(product: MatmulOp) -> bool:
    """Whether the weights are better read as halves, however many rows each of them is multiplied with."""
    *batches, rows, _ = dims(product.output.type)
    weights = element_count(product.rhs.type)
    if not isinstance(weights, int):
        return False
    *own, _, _ = dims(product.rhs.type)
    shared = prod(size for size in own if isinstance(size, int)) == 1
    return pay_as_halves(product_of([*batches, rows]) if shared else rows, weights * byte_width(f32))


def _round_weights(product: MatmulOp, store: WeightStore, issues: WeightIssues) -> None:
    """Let a product read weights with the numbers of halves, which are a constant of their own."""
    weights = _weights(product)
    if weights is None or store.are_halves(weights):
        return
    array = store.get(weights)
    if loses_weight(array, f16):
        return
    halves = array.astype("float16")
    rounded = store.put(halves.astype("float32"), f"{weights.key.data}.halves", halves)
    if not store.are_halves(rounded):
        return  # too few to be worth it
    issues.look(array, f16, name_of(product))
    constant = ConstantOp(properties={"value": rounded}, result_types=[product.rhs.type])
    block, old = product.parent, product.rhs.owner
    assert block is not None
    block.insert_op_before(constant, product)
    product.operands[1] = constant.output
    if isinstance(old, ConstantOp) and old.output.first_use is None:
        block.erase_op(old)
