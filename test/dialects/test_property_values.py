"""Properties of ops from plain Python values."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, f32, f64, i64
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from mlirt.dialects.tensor_types import tensor
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.dialects.trt.slice import SliceOp


def test_an_op_is_built_from_plain_values() -> None:
    x = create_ssa_value(tensor(f32, [2, 4]))
    clip = ActivationOp.build_inferred([x], {"kind": "clip", "alpha": -1, "beta": 6.0})
    assert clip.kind.data is ActivationKind.CLIP
    assert (clip.alpha, clip.beta) == (FloatAttr(-1.0, f64), FloatAttr(6.0, f64))
    assert clip.output.type == x.type
    total = ReduceOp.build_inferred([x], {"kind": "sum", "axes": [1], "keep_dims": True})
    assert total.axes == DenseArrayBase.from_list(i64, [1])
    assert total.output.type == tensor(f32, [2, 1])


def test_attributes_are_taken_as_they_are_and_none_is_the_default() -> None:
    x = create_ssa_value(tensor(f32, [4]))
    first = ActivationOp.build_inferred([x], {"kind": "elu", "alpha": FloatAttr(0.5, f64), "beta": None})
    assert first.alpha.value.data == 0.5
    assert first.beta == ActivationOp.build_inferred([x], {"kind": "elu"}).beta


def test_a_misspelt_property_is_named() -> None:
    x = create_ssa_value(tensor(f32, [4]))
    with pytest.raises(VerifyException, match=r"trt\.activation has no property 'alpa'; it has alpha, beta, kind"):
        ActivationOp.build_inferred([x], {"kind": "clip", "alpa": 1.0})


def test_operands_that_may_be_absent_can_be_left_out() -> None:
    x = create_ssa_value(tensor(f32, [4]))
    cut = SliceOp.build_inferred([x], {"start": [1], "size": [2], "stride": [1]})
    assert cut.output.type == tensor(f32, [2])
    assert (cut.dynamic_start, cut.fill) == (None, None)
    with pytest.raises(VerifyException, match=r"trt\.activation has been given 0 operands; it has input"):
        ActivationOp.build_inferred([], {"kind": "relu"})
    with pytest.raises(VerifyException, match=r"trt\.activation has been given 2 operands; it has input"):
        ActivationOp.build_inferred([x, x], {"kind": "relu"})
