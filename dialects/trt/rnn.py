"""Recurrent layers over a sequence in one direction: simple, LSTM and GRU cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import auto
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    TensorType,
    f64,
    i8,
    i16,
    i32,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.length_requirements import LengthRequirement, equal
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import Tensor, dims, element_of, is_float, rank, tensor
from mlirt.dialects.trt.activation import ActivationKind, ActivationKindAttr
from mlirt.dialects.trt.operand_checks import constant_dims, same_elements_but_bias, shape_text

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


class RnnCell(StrEnum):
    SIMPLE = auto()
    LSTM = auto()
    GRU = auto()


# Rows of the weights: simple h; LSTM input, output, forget, cell; GRU update, reset, hidden.
GATES = {RnnCell.SIMPLE: 1, RnnCell.LSTM: 4, RnnCell.GRU: 3}
ACTIVATIONS = {
    RnnCell.SIMPLE: (ActivationKind.TANH,),
    RnnCell.LSTM: (ActivationKind.SIGMOID, ActivationKind.TANH, ActivationKind.TANH),
    RnnCell.GRU: (ActivationKind.SIGMOID, ActivationKind.TANH),
}


@irdl_attr_definition
class RnnCellAttr(EnumAttribute[RnnCell], SpacedOpaqueSyntaxAttribute):
    name = "trt.rnn_cell"


@irdl_op_definition
class RnnOp(TensorOp):
    """One layer of a recurrent network over `input` [T, N, E] with H hidden units (tensorrt-features.md#1.32, 7.21).

    Without weights the input is [T, N, G H]: it has been multiplied by W already, and there is no bias b.

    With w = W x_t + b and r = R h_(t-1) + d, row blocks of H per gate, and activations f, g, k:

    | cell | gates in order | h_t |
    |---|---|---|
    | simple | h | f(w + r) |
    | lstm | i, o, f, c | i, f = f(w + r + p c_(t-1)); c_t = f c_(t-1) + i g(w + r); h_t = f(w + r + p c_t) k(c_t) |
    | gru | z, r, h | (1 - z) g(w + R (r h_(t-1)) + d) + z h_(t-1); `linear_before_reset`: g(w + r (R h_(t-1) + d)) |

    `clip` limits the sums of the gates to [-clip, clip]. `input_forget` makes f = 1 - i. `reverse` starts at the
    end of each sequence. With `lengths` [N] the steps from a sequence's length on give 0 and leave its state alone.
    Results: the outputs [T, N, H], the last hidden state [N, H], and for an LSTM the last cell state [N, H].

    Recurrent weights of integers come with `scale` [G H]: before each step the hidden state of a sequence is rounded to
    256 steps that span its numbers and zero, as `dynamic_steps` has it, and R h is the exact product of integers times
    (the size of a step times the scale). It is added to w, and d to both, each sum and product rounded for itself.

    C1: all operands but `lengths` have one floating-point element type, but for a float32 `bias` of half-precision
    operands; recurrent weights with a scale are i8 or i16.
    C2: weights are [G H, E], recurrent weights [G H, H], biases [G H], states [N, H], peepholes [3 H] in the order
    i, o, f. C3: `lengths` is a vector of int32. C4: one activation with an alpha and a beta for each of the cell's. C5:
    only an LSTM has a cell state, peepholes and `input_forget`. C6: only an LSTM has a scale.

    Example: `%y, %h = trt.rnn simple %x, %r weights %w : tensor<4x3xf32> : tensor<7x2x3xf32>, tensor<4x4xf32>
    -> tensor<7x2x4xf32>, tensor<2x4xf32>`
    """

    name = "trt.rnn"

    cell = prop_def(RnnCellAttr)
    input = operand_def(TensorType)
    recurrent = operand_def(TensorType)
    weights = opt_operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    recurrent_bias = opt_operand_def(TensorType)
    initial_hidden = opt_operand_def(TensorType)
    initial_cell = opt_operand_def(TensorType)
    lengths = opt_operand_def(TensorType)
    peepholes = opt_operand_def(TensorType)
    scale = opt_operand_def(TensorType)
    activations = opt_prop_def(ArrayAttr[ActivationKindAttr])
    alphas = opt_prop_def(DenseArrayBase.constr(f64))
    betas = opt_prop_def(DenseArrayBase.constr(f64))
    clip = opt_prop_def(FloatAttr)
    reverse = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    linear_before_reset = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    input_forget = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    outputs = var_result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$cell $input `,` $recurrent (`weights` $weights^ `:` type($weights))? (`bias` $bias^ `:` type($bias))? "
        "(`recurrent_bias` $recurrent_bias^ `:` type($recurrent_bias))? "
        "(`hidden` $initial_hidden^ `:` type($initial_hidden))? (`cell` $initial_cell^ `:` type($initial_cell))? "
        "(`lengths` $lengths^ `:` type($lengths))? (`peepholes` $peepholes^ `:` type($peepholes))? "
        "(`scale` $scale^ `:` type($scale))? "
        "attr-dict `:` type($input) `,` type($recurrent) `->` type($outputs)"
    )

    @property
    def gates(self) -> int:
        return GATES[self.cell.data]

    @property
    def hidden_size(self) -> int:
        size = dims(self.recurrent.type)[-1]
        assert isinstance(size, int)
        return size

    def functions(self) -> list[tuple[ActivationKind, float, float]]:
        """The kind, alpha and beta of each activation."""
        if self.activations is None:
            return [(kind, 0.0, 0.0) for kind in ACTIVATIONS[self.cell.data]]
        kinds = [attr.data for attr in self.activations]
        alphas, betas = (_numbers(attr, len(kinds)) for attr in (self.alphas, self.betas))
        return list(zip(kinds, alphas, betas, strict=True))

    def check(self) -> None:
        integers = () if self.scale is None else (self.recurrent,)
        others = [operand for operand in self.operands if operand not in (self.lengths, *integers)]
        same_elements_but_bias(self, "C1", self.bias, others)
        for weights in integers:
            found = element_of(weights.type)
            require(found in (i8, i16), f"C1: recurrent weights with a scale are i8 or i16, not {found}")
        element = element_of(self.input.type)
        require(is_float(element), f"C1: {self.name} needs floating-point numbers, not {element}")
        require(rank(self.input.type) == 3, f"C2: the input of {self.name} is [T, N, E], not {self.input.type}")
        require(rank(self.recurrent.type) == 2, f"C2: recurrent weights are [G H, H], not {self.recurrent.type}")
        constant_dims(self, "C2", self.recurrent.type, "the matrix of recurrent weights")
        projected = self.weights is not None or self.bias is None
        require(projected, f"C2: the input of {self.name} is projected, so that it has no bias")
        for what, operand, wanted in self._shapes():
            require(
                rank(operand.type) == len(wanted),
                f"C2: {what} of {self.name}: expected [{', '.join(map(str, wanted))}], got {shape_text(operand.type)}",
            )
        if self.lengths is not None:
            found = element_of(self.lengths.type)
            require(found == i32, f"C3: the lengths of {self.name} are int32, not {found}")
        wanted, given = len(ACTIVATIONS[self.cell.data]), len(self.functions_given())
        require(given == wanted, f"C4: a {self.cell.data} cell has {wanted} activations, not {given}")
        is_lstm = self.cell.data is RnnCell.LSTM
        extra = self.initial_cell is not None or self.peepholes is not None or bool(self.input_forget.value.data)
        require(
            is_lstm or not extra,
            f"C5: a {self.cell.data} cell has no cell state, no peepholes and no input_forget; only lstm has",
        )
        require(is_lstm or self.scale is None, f"C6: a {self.cell.data} cell has no scale; only lstm has")

    def functions_given(self) -> Sequence[object]:
        if self.activations is None:
            return ACTIVATIONS[self.cell.data]
        sizes = {len(self.activations), *(len(a) for a in (self.alphas, self.betas) if a is not None)}
        return self.activations.data if len(sizes) == 1 else ()

    def length_requirements(self) -> Iterator[LengthRequirement]:
        if self.weights is None:
            width = dims(self.input.type)[2]
            label = f"length of the projected input of {self.name}"
            yield equal("C2", label, self.gates * self.hidden_size, width)
        for what, operand, wanted in self._shapes():
            for one, other in zip(wanted, dims(operand.type), strict=True):
                yield equal("C2", f"{what} of {self.name}", one, other)

    def _shapes(self) -> Iterator[tuple[str, SSAValue, list[Dim]]]:
        """What the operands are called, and the dimensions that they must have."""
        _, batch, width = dims(self.input.type)
        size = self.hidden_size
        rows = self.gates * size
        wanted: list[tuple[str, SSAValue | None, list[Dim]]] = [
            ("weights", self.weights, [rows, width]),
            ("recurrent weights", self.recurrent, [rows, size]),
            ("bias", self.bias, [rows]),
            ("recurrent bias", self.recurrent_bias, [rows]),
            ("hidden state", self.initial_hidden, [batch, size]),
            ("cell state", self.initial_cell, [batch, size]),
            ("peepholes", self.peepholes, [3 * size]),
            ("lengths", self.lengths, [batch]),
            ("scale", self.scale, [rows]),
        ]
        yield from ((what, operand, lengths) for what, operand, lengths in wanted if operand is not None)

    def infer(self) -> Sequence[Tensor]:
        steps, batch, _ = dims(self.input.type)
        element, size = element_of(self.input.type), self.hidden_size
        states = 2 if self.cell.data is RnnCell.LSTM else 1
        return [tensor(element, [steps, batch, size]), *[tensor(element, [batch, size])] * states]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.trt.rnn_reference import Layer

        operands = dict(zip(self.operands, arrays, strict=True))

        def of(operand: SSAValue | None) -> Array | None:
            return None if operand is None else operands[operand]

        layer = Layer(
            cell=str(self.cell.data),
            functions=self.functions(),
            clip=float("inf") if self.clip is None else self.clip.value.data,
            linear_before_reset=bool(self.linear_before_reset.value.data),
            input_forget=bool(self.input_forget.value.data),
            recurrent=operands[self.recurrent],
            scale=of(self.scale),
            recurrent_bias=of(self.recurrent_bias),
            peepholes=of(self.peepholes),
        )
        backwards = bool(self.reverse.value.data)
        states = [of(self.initial_hidden), of(self.initial_cell)]
        return layer.run(arrays[0], of(self.weights), of(self.bias), states, of(self.lengths), backwards)


def _numbers(attr: DenseArrayBase[AnyFloat] | None, count: int) -> list[float]:
    return [0.0] * count if attr is None else [float(number) for number in attr.iter_values()]


__all__ = ["ACTIVATIONS", "GATES", "RnnCell", "RnnCellAttr", "RnnOp"]
