"""Tensors that a run finds to be empty, such as the boxes of a picture without any, against onnxruntime.

tensorrt-features.md#20.1.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx_control_flow import check_on_cpu, model

# What is done to the rows of `x` whose sum is positive: a layer for each way in which a kernel finds its elements.
LAYERS = {
    "second_columns": "i = Constant <value_ints = [4]> () z = Gather <axis = 1> (y, i)",
    "slices_side_by_side": """
        a = Constant <value_ints = [1]> () s = Constant <value_ints = [2]> () e = Constant <value_ints = [5]> ()
        n = Neg (y) t = Concat <axis = 1> (y, n) z = Slice (t, s, e, a)""",
    "slices_from_behind_the_end": """
        s = Constant <value_ints = [5, 2]> () e = Constant <value_ints = [99, 4]> ()
        t = Slice (y, s, e) z = ReduceSum <keepdims = 0> (t)""",
    "rows_turned_round": """
        s = Constant <value_ints = [-2]> () e = Constant <value_ints = [-99]> () a = Constant <value_ints = [0]> ()
        t = Slice (y, s, e, a, s) z = Concat <axis = 0> (t, y)""",
    "sums_of_columns": "a = Constant <value_ints = [0]> () z = ReduceSum (y, a)",
    "products_of_rows": "t = Transpose <perm = [1, 0]> (y) z = MatMul (y, t)",
    "products_of_columns": "t = Transpose <perm = [1, 0]> (y) z = MatMul (t, y)",
    "attention": """
        t = Transpose <perm = [1, 0]> (y) s = MatMul (y, t) p = Softmax <axis = 1> (s) z = MatMul (p, y)""",
    "largest": "k = Constant <value_ints = [2]> () z, i = TopK <axis = 1> (y, k)",
}


@pytest.mark.parametrize("layer", LAYERS)
def test_no_rows(layer: str) -> None:
    made = model(f"""
        <ir_version: 9, opset_import: ["" : 18]>
        rows (float[n, 6] x) => (z) {{
           one = Constant <value_ints = [1]> () zero = Constant <value_float = 0.0> ()
           sums = ReduceSum <keepdims = 0> (x, one) kept = Greater (sums, zero)
           y = Compress <axis = 0> (x, kept) {LAYERS[layer]}
        }}""")
    some = np.random.default_rng(7).uniform(0.1, 1, (4, 6)).astype(np.float32)
    some[1] *= -1
    check_on_cpu(made, *({"x": x} for x in (some, -np.abs(some), some[:1], some[:0], some)))
