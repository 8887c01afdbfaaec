"""Attention: softmax of the products of queries and keys, times values, in one launch without the scores in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
)
from xdsl.traits import Pure

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.fused_op import (
    FusedOp,
    bind_dims,
    check_access,
    check_region,
    element_types,
    gather_operand,
    numbers_of,
    region_values,
)
from mlirt.dialects.integer_list import integer_list, integers
from mlirt.dialects.scalar_semantics import evaluate_region
from mlirt.dialects.symbolic import Dim, coefficient_of, evaluate, floor_div, sym
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_of, is_float, numpy_dtype, rank

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_HEADS = 3  # operands before the extras
_PICTURE_AXES = 4  # row and column of the query and of the key


@irdl_op_definition
class AttentionOp(FusedOp):
    """`result[b.., i, c] = sum over j of p[b.., i, j] * v[b.., j, c]` where `p = softmax over j of s[b.., i, j]` and
    `s = score(sum over e of q[b.., i, e] * k[b.., j, e], extras..)`.

    With B batch dimensions `d0`.., the query i is iteration dimension `dB`, the key j the next, the depth e the one
    after it, and the column c the last. `access` says which element each operand reads: `q` over b, i, e, `k` over b,
    j, e, `v` over b, j, c, and every extra over b, i, j. So the splitting into heads, transposes, slices and shared
    heads cost nothing. `reduced` holds how many keys there are, and the depth. The result's axis `a` is axis
    `order[a]` of `[b.., i, c]`.

    The region turns a product into a score: scale, mask and bias are written there. `last_key`, an expression like
    `"d2"` in the query, says that later keys do not count for it (causal attention). A row without a score above -inf
    gives not-a-number, as softmax does, or with `zero_masked` zeros. An epilogue, which may be missing, turns a result
    in the type of the computation into an element of the output: int8 for the next product, say.

    With `widths`, queries and keys are places of pictures so many columns wide, and extras may be read by these too:
    the query i is in row d(B+4) and column d(B+5), the key j in row d(B+6) and column d(B+7). So a bias that is a sum
    over rows and columns is read as its terms.

    C1: one access per operand. C2: `order` is a permutation of the result's axes. C3: floating-point numbers. C4:
    `reduced` is the number of keys and the depth. C5: `last_key` is the query plus a number. C6: there is at most one
    epilogue; without one the output has floating-point numbers. C7: `widths` are two numbers, which queries and keys
    are multiples of.

    Example: `%y = fused.attention %q, %k, %v {access = [#fused.access<["d0", "d1", "d3"]>,
    #fused.access<["d0", "d2", "d3"]>, #fused.access<["d0", "d2", "d4"]>], reduced = #trt.dims<["7", "16"]>}
    : (tensor<2x5x16xf32>, tensor<2x7x16xf32>, tensor<2x7x8xf32>) -> tensor<2x5x8xf32> { ^bb0(%s: f32): .. }`
    """

    name = "fused.attention"

    query = operand_def(TensorType)
    key = operand_def(TensorType)
    values = operand_def(TensorType)
    extras = var_operand_def(TensorType)
    access = prop_def(ArrayAttr[AccessAttr])
    reduced = prop_def(DimsAttr)
    order = opt_prop_def(DenseArrayBase.constr(i64))
    last_key = opt_prop_def(AccessAttr)
    widths = opt_prop_def(DenseArrayBase.constr(i64))
    zero_masked = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    output = result_def(TensorType)
    score = region_def("single_block")
    epilogues = var_region_def("single_block")

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "operands attr-dict `:` functional-type(operands, results) $score $epilogues"

    def __init__(
        self,
        operands: tuple[SSAValue, SSAValue, SSAValue],
        access: Sequence[AccessAttr],
        reduced: tuple[Dim, Dim],
        result: Attribute,
        score: Region,
        extras: Sequence[SSAValue] = (),
        order: Sequence[int] | None = None,
        last_key: Dim | None = None,
        zero_masked: bool = False,
        epilogue: Region | None = None,
        widths: tuple[int, int] | None = None,
    ):
        super().__init__(
            operands=[*operands, extras],
            properties={
                "access": ArrayAttr(access),
                "reduced": DimsAttr.of(reduced),
                "order": None if order is None else integer_list(order),
                "last_key": None if last_key is None else AccessAttr.of([last_key]),
                "widths": None if widths is None else integer_list(widths),
                "zero_masked": BoolAttr.from_bool(zero_masked),
            },
            result_types=[result],
            regions=[score, [] if epilogue is None else [epilogue]],
        )

    @property
    def epilogue(self) -> Region | None:
        """What results go through, if anything."""
        return next(iter(self.epilogues), None)

    def detached_regions(self) -> list[Region | Sequence[Region]]:
        """Its regions for an op that takes its place, as `build` wants them."""
        return [self.detach_region(self.score), [self.detach_region(one) for one in list(self.epilogues)]]

    @property
    def batch_rank(self) -> int:
        """The number of batch dimensions, which is also the iteration dimension of the query."""
        return rank(self.output.type) - 2

    def axes(self) -> tuple[int, ...]:
        """For each axis of the result, which axis of `[b.., i, c]` it is."""
        return tuple(range(self.batch_rank + 2)) if self.order is None else integers(self.order)

    def natural_dims(self) -> tuple[Dim, ...]:
        """The lengths along the batch dimensions, the queries and the columns."""
        found = dict(zip(self.axes(), dims(self.output.type), strict=True))
        return tuple(found[axis] for axis in range(len(found)))

    @property
    def batch(self) -> tuple[Dim, ...]:
        return self.natural_dims()[:-2]

    @property
    def queries(self) -> Dim:
        return self.natural_dims()[-2]

    @property
    def columns(self) -> Dim:
        return self.natural_dims()[-1]

    @property
    def keys(self) -> Dim:
        return self.reduced.dims()[0]

    @property
    def depth(self) -> Dim:
        return self.reduced.dims()[1]

    def picture_widths(self) -> tuple[int, int] | None:
        """The columns of the pictures whose places queries and keys are; None where they are none."""
        return None if self.widths is None else (integers(self.widths)[0], integers(self.widths)[1])

    def last_key_offset(self) -> Dim | None:
        """n where keys up to the query plus n count; None where all do."""
        return None if self.last_key is None else self.last_key.indices()[0] - sym(f"d{self.batch_rank}")

    def verify_(self) -> None:
        require(
            len(self.access) == len(self.operands),
            f"C1: {self.name} has {len(self.operands)} operands and {len(self.access)} accesses",
        )
        axes = rank(self.output.type)
        require(
            sorted(self.axes()) == list(range(axes)),
            f"C2: {self.name}: {list(self.axes())} is no order of {axes} axes",
        )
        floats = [self.query, self.key, self.values, *([self.output] if self.epilogue is None else [])]
        for value in floats:
            require(is_float(element_of(value.type)), f"C3: {self.name} needs floating-point numbers, not {value.type}")
        require(
            len(self.reduced.dims()) == 2,
            f"C4: {self.name} reduces keys and depth, not {len(self.reduced.dims())} dimensions",
        )
        self._check_widths()
        more = 0 if self.widths is None else _PICTURE_AXES
        for number, (operand, access) in enumerate(zip(self.operands, self.access, strict=True)):
            check_access(self, access, operand.type, axes + 2 + (more if number >= _HEADS else 0))
        self._check_last_key()
        taken = [self.score.block.args[0].type, *element_types(self.extras)] if self.score.block.args else []
        require(bool(taken) and is_float(taken[0]), f"C3: {self.name}: the region takes the product first")
        check_region(self, self.score, taken, taken[:1])
        require(len(self.epilogues) <= 1, f"C6: {self.name} has {len(self.epilogues)} epilogues")
        if self.epilogue is not None:
            check_region(self, self.epilogue, taken[:1], [element_of(self.output.type)])

    def _check_widths(self) -> None:
        if self.widths is None:
            return
        widths = integers(self.widths)
        counted = zip((self.queries, self.keys), widths, strict=False)
        fits = len(widths) == len((self.queries, self.keys)) and all(
            width > 0 and floor_div(count, width) * width == count for count, width in counted
        )
        require(fits, f"C7: {self.name}: {self.queries} queries and {self.keys} keys are no rows of {list(widths)}")

    def _check_last_key(self) -> None:
        if self.last_key is None:
            return
        query, indices = f"d{self.batch_rank}", self.last_key.indices()
        fits = len(indices) == 1 and coefficient_of(indices[0], query) == 1
        require(fits, f"C5: {self.name}: {self.last_key} is not {query} plus a number")

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        env = bind_dims(self, arrays)
        *batch, rows, columns = numbers_of(self.natural_dims(), env)
        keys, depth = numbers_of(self.reduced.dims(), env)
        q = self._gathered(arrays, 0, [*batch, rows, 1, depth, 1], env).reshape(*batch, rows, depth)
        k = self._gathered(arrays, 1, [*batch, 1, keys, depth, 1], env).reshape(*batch, keys, depth)
        v = self._gathered(arrays, 2, [*batch, 1, keys, 1, columns], env).reshape(*batch, keys, columns)
        space = [*batch, rows, keys]
        extras = [self._extra(arrays, _HEADS + n, space, env) for n in range(len(self.extras))]
        wide = numpy_dtype(self.score.block.args[0].type)
        with np.errstate(all="ignore"):
            product = (q.astype(np.float64) @ np.swapaxes(k.astype(np.float64), -1, -2)).astype(wide)
            (score,) = evaluate_region(self.score, [product, *extras], region_values(space, env))
            score = np.broadcast_to(score, space).astype(np.float64)
            offset = self.last_key_offset()
            if offset is not None:
                last = np.arange(rows)[:, None] + evaluate(offset, env)
                score = np.where(np.arange(keys) <= last, score, -np.inf)
            p = np.exp(score - score.max(-1, keepdims=True, initial=-np.inf))
            total = p.sum(-1, keepdims=True)
            result = (p @ v.astype(np.float64)) / total
            if self.zero_masked.value.data:
                result = np.where(total > 0, result, 0.0)
            result = np.transpose(result, self.axes())
            if self.epilogue is not None:
                (result,) = evaluate_region(self.epilogue, [result.astype(wide)], region_values(result.shape, env))
            return [np.ascontiguousarray(result).astype(numpy_dtype(element_of(self.output.type)))]

    def _extra(self, arrays: Sequence[Array], number: int, space: Sequence[int], env: dict[str, int]) -> Array:
        """An extra over b, i, j; with `widths` i and j are counted by rows and columns."""
        widths = self.picture_widths()
        if widths is None:
            return self._gathered(arrays, number, [*space, 1, 1], env).reshape(space)
        *batch, queries, keys = space
        by_row = [queries // widths[0], widths[0], keys // widths[1], widths[1]]
        rank_ = len(batch)
        names = [f"d{rank_ + axis}" for axis in range(2 + 2 + _PICTURE_AXES)]
        places: dict[str, Dim] = {
            names[0]: sym(names[4]) * widths[0] + sym(names[5]),
            names[1]: sym(names[6]) * widths[1] + sym(names[7]),
        }
        access = self.access.data[number].substituted(places)
        return gather_operand(arrays[number], access, [*batch, 1, 1, 1, 1, *by_row], env).reshape(space)

    def _gathered(self, arrays: Sequence[Array], number: int, space: Sequence[int], env: dict[str, int]) -> Array:
        return gather_operand(arrays[number], self.access.data[number], space, env)
