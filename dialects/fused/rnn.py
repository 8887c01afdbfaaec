"""A recurrent layer after its input has been projected: all steps of a sequence in one launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, TensorType, i8, i16
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure

from mlirt.dialects.dynamic_steps import dynamic_steps
from mlirt.dialects.fused.fused_op import FusedOp, check_region
from mlirt.dialects.scalar_semantics import evaluate_region
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import dims, element_of, rank, tensor

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_op_definition
class RnnOp(FusedOp):
    """For t = 0, 1, ..: `r[g] = sum over k of hidden[k] recurrent[k, g] + bias[g]`, `states = cell(x[t], r, states)`.

    `input` x is [T, N, G, H] with G gates, `recurrent` [H, G, H], the bias [G, H], each initial state [N, H]; the first
    state is the hidden one. The region `cell` takes the numbers of x and of r gate by gate, then the states, then the
    `extras` [H] (peepholes) of one hidden unit, and yields its new states. The region `reset` is empty, or takes the
    same and yields what stands for `hidden` in the product of the last gate, whose r it must not use. `reverse` starts
    at the end of each sequence. From a sequence's length on its states stay and its outputs are 0. With a `scale`
    [G, H] the recurrent weights are integers, and `r[g]` is the product of them with the hidden state in whole steps,
    as `dynamic_steps` gives them for each sequence, times the size of a step times the scale.
    Results: outputs [T, N, H], the last states, and with `reset` [N, H] to work in, whose contents mean nothing.

    C1: the shapes are those above. C2: the regions take and yield numbers of one type. C3: weights with a scale are i8
    or i16, and there is no `reset`.
    """

    name = "fused.rnn"

    input = operand_def(TensorType)
    recurrent = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    initial = var_operand_def(TensorType)
    lengths = opt_operand_def(TensorType)
    extras = var_operand_def(TensorType)
    scale = opt_operand_def(TensorType)
    reverse = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    outputs = var_result_def(TensorType)
    cell = region_def("single_block")
    reset = region_def()

    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$input `,` $recurrent (`bias` $bias^ `:` type($bias))? `initial` `(` $initial `:` type($initial) `)` "
        "(`lengths` $lengths^ `:` type($lengths))? (`extras` `(` $extras^ `:` type($extras) `)`)? "
        "(`scale` $scale^ `:` type($scale))? "
        "attr-dict `:` type($input) `,` type($recurrent) `->` type($outputs) $cell `reset` $reset"
    )

    def __init__(
        self,
        input: SSAValue,
        recurrent: SSAValue,
        bias: SSAValue | None,
        initial: Sequence[SSAValue],
        lengths: SSAValue | None,
        extras: Sequence[SSAValue],
        cell: Region,
        reset: Region | None = None,
        reverse: bool = False,
        scale: SSAValue | None = None,
    ):
        steps, batch, _, size = dims(input.type)
        element = element_of(input.type)
        state = tensor(element, [batch, size])
        work = [] if reset is None else [state]
        super().__init__(
            operands=[input, recurrent, bias, initial, lengths, extras, scale],
            properties={"reverse": BoolAttr.from_bool(reverse)},
            result_types=[[tensor(element, [steps, batch, size]), *[state] * len(initial), *work]],
            regions=[cell, Region() if reset is None else reset],
        )

    @property
    def gates(self) -> int:
        count = dims(self.input.type)[2]
        assert isinstance(count, int)
        return count

    @property
    def has_reset(self) -> bool:
        return bool(self.reset.blocks)

    @property
    def number_type(self) -> Attribute:
        """The type that the regions compute in."""
        return self.cell.block.args[0].type

    def verify_(self) -> None:
        require(rank(self.input.type) == 4, f"C1: the input of {self.name} is [T, N, G, H], not {self.input.type}")
        steps, batch, gates, size = dims(self.input.type)
        wanted = [("recurrent", self.recurrent, (size, gates, size))]
        wanted += [] if self.bias is None else [("bias", self.bias, (gates, size))]
        wanted += [] if self.scale is None else [("scale", self.scale, (gates, size))]
        wanted += [("state", state, (batch, size)) for state in self.initial]
        wanted += [] if self.lengths is None else [("lengths", self.lengths, (batch,))]
        wanted += [("extra", extra, (size,)) for extra in self.extras]
        wanted += [("outputs", self.outputs[0], (steps, batch, size))]
        wanted += [("last state", state, (batch, size)) for state in self.outputs[1:]]
        for what, value, shape in wanted:
            found = dims(value.type)
            require(found == shape, f"C1: {what} of {self.name} is {list(map(str, shape))}, not {value.type}")
        count = 1 + len(self.initial) + self.has_reset
        require(len(self.outputs) == count, f"C1: {self.name} has {count} results here, not {len(self.outputs)}")
        if self.scale is not None:
            found = element_of(self.recurrent.type)
            require(found in (i8, i16), f"C3: recurrent weights with a scale are i8 or i16, not {found}")
            require(not self.has_reset, f"C3: {self.name} has a scale and a reset")
        number = self.number_type
        takes = [number] * (2 * self.gates + len(self.initial) + len(self.extras))
        check_region(self, self.cell, takes, [number] * len(self.initial))
        if self.has_reset:
            check_region(self, self.reset, takes, [number])

    def reference(self, *arrays: Array) -> Sequence[Array]:
        import numpy as np

        given = dict(zip(self.operands, arrays, strict=True))
        x, recurrent = given[self.input], given[self.recurrent].astype(np.float64)
        steps, batch, gates, size = x.shape
        bias = np.zeros((gates, size)) if self.bias is None else given[self.bias].astype(np.float64)
        states = [given[state].astype(np.float32 if x.dtype.itemsize < 4 else x.dtype) for state in self.initial]
        extras = [given[extra].astype(states[0].dtype) for extra in self.extras]
        lengths = np.full(batch, steps) if self.lengths is None else np.minimum(given[self.lengths], steps)
        outputs, rows = np.zeros((steps, batch, size), states[0].dtype), np.arange(int(batch))
        for number in range(steps):
            active = number < lengths
            backwards = bool(self.reverse.value.data)
            times = np.where(active, lengths - 1 - number, number) if backwards else np.full(batch, number)
            product = self._product(states[0], recurrent, given) + bias[:, None]
            picked = [*x[times, rows].astype(states[0].dtype).swapaxes(0, 1), *product.astype(states[0].dtype)]
            if self.has_reset:
                (inner,) = evaluate_region(self.reset, [*picked, *states, *extras])
                last = np.einsum("nk,kh->nh", inner, recurrent[:, -1]) + bias[-1]
                picked[-1] = last.astype(states[0].dtype)
            new = evaluate_region(self.cell, [*picked, *states, *extras])
            states = [np.where(active[:, None], one, old) for one, old in zip(new, states, strict=True)]
            outputs[times, rows] = np.where(active[:, None], states[0], 0)
        work = [np.zeros_like(states[0])] if self.has_reset else []
        return [array.astype(x.dtype) for array in (outputs, *states, *work)]

    def _product(self, hidden: Array, recurrent: Array, given: Mapping[SSAValue, Array]) -> Array:
        """Recurrent weights times hidden states, [G, N, H]."""
        import numpy as np

        if self.scale is None:
            return np.einsum("nk,kgh->gnh", hidden, recurrent)
        steps, size = dynamic_steps(hidden)
        return np.einsum("nk,kgh->gnh", steps, recurrent) * (size * given[self.scale][:, None])
