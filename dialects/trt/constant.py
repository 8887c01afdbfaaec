"""Values known when the engine is built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, LocationAttr, TensorType
from xdsl.irdl import AnyAttr, ParsePropInAttrDict, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import (
    Tensor,
    byte_width,
    dims,
    dtype_name,
    element_count,
    element_of,
    numpy_dtype,
    tensor,
)
from mlirt.dialects.tensor_types import element_type as element_type_of
from mlirt.dialects.weights import WeightsAttr, WeightStore

if TYPE_CHECKING:
    from xdsl.dialects.builtin import AnyDenseElement

    from mlirt.dialects.tensor_op import Array

# Larger arrays go to the weight store, so that the IR stays readable.
INLINE_BYTES = 1024


@dataclass
class Looks:
    """How often anybody has asked a constant of this process for its elements.

    Verifiers ask by `ConstantOp.array`, or for one number by `splat_of`: one after which the count is the same depends
    on no elements.
    """

    count: int = 0


looks = Looks()


@irdl_op_definition
class ConstantOp(TensorOp):
    """A tensor whose elements are known at build time (tensorrt-features.md#1.5).

    `value` is a dense attribute for small tensors, or `#trt.weights<key, digest>` for an array in the weight store.

    C1: the dimensions are numbers. C2: a dense value has as many elements as the type, or is a splat. C3: the rank is
    at most 8.

    Example: `%c = trt.constant {value = dense<1.0> : tensor<2xf32>} : tensor<2xf32>`
    """

    name = "trt.constant"

    value = prop_def(AnyAttr())
    output = result_def(TensorType)

    traits = traits_def(Pure(), ConstantLike())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($output)"

    def check(self) -> None:
        value = self.value
        require(
            isinstance(value, DenseIntOrFPElementsAttr | WeightsAttr),
            f"C2: the value of {self.name} is dense<..> or #trt.weights<..>, but it is {value.name}",
        )

    def infer(self) -> Sequence[Tensor]:
        own = self.output.type
        assert isinstance(own, TensorType)
        shape = dims(own)
        if not all(isinstance(dim, int) for dim in shape):
            raise VerifyException(f"C1: {self.name} needs constant dimensions, not {own}")
        require(len(shape) <= 8, f"C3: {self.name} has rank {len(shape)}, the largest is 8")
        value = self.value
        if isinstance(value, DenseIntOrFPElementsAttr):
            stored = len(value.data.data) // byte_width(element_of(own))
            if stored not in (1, element_count(own)):
                raise VerifyException(
                    f"C2: {self.name} holds {stored} elements, its type {own} needs {element_count(own)}"
                )
        return [own]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        return [self.array(WeightStore())]

    def array(self, store: WeightStore) -> Array:
        """The elements as an array of the result's type; raises `InvalidModelError` where the store lacks them."""
        import numpy as np

        looks.count += 1
        value = self.value
        if isinstance(value, WeightsAttr):
            return store.get(value)
        assert isinstance(value, DenseIntOrFPElementsAttr)
        shape = [dim for dim in dims(self.output.type) if isinstance(dim, int)]
        flat = np.frombuffer(value.data.data, numpy_dtype(element_of(self.output.type)))
        return np.broadcast_to(flat[0], shape) if flat.size == 1 else flat.reshape(shape)

    def inline(self, store: WeightStore) -> None:
        """Let the elements stand in the IR, and not in the store."""
        if isinstance(self.value, WeightsAttr):
            self.properties["value"] = _dense(store.get(self.value), self.output.type)

    @classmethod
    def from_array(
        cls,
        array: Array,
        store: WeightStore,
        hint: str,
        location: LocationAttr | None = None,
        source: Array | None = None,
    ) -> ConstantOp:
        """A constant op for an array; large ones are put in the store under a key made from `hint`, where only a
        narrower `source` is kept of one that has the same numbers.
        """
        type_ = tensor(element_type_of(dtype_name(array.dtype)), [int(size) for size in array.shape])
        value = _dense(array, type_) if array.nbytes <= INLINE_BYTES else store.put(array, hint, source)
        op = cls.build(properties={"value": value}, result_types=[type_])
        if location is not None:
            op.location = location
        return op


def _dense(array: Array, type_: Tensor) -> DenseIntOrFPElementsAttr:
    import numpy as np
    from xdsl.dialects.builtin import BytesAttr

    elements = cast("TensorType[AnyDenseElement]", type_)
    return DenseIntOrFPElementsAttr(elements, BytesAttr(np.ascontiguousarray(array).tobytes()))
