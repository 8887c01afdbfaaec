"""Small ONNX models with branches and loops, and a bridge to run them on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper, parser
from onnx_models import Array, numbers, run_onnxruntime

from mlirt.builder.compile import compile

SUM_EVEN = """
<ir_version: 8, opset_import: ["" : 17]>
sum_even (float[n] items, int64 count) => (float total) {
   zero = Constant <value = float {0.0}> ()
   total = Loop (count, , zero) <body: graph = body (int64 i, bool go_in, float sum_in) =>
      (bool go_out, float sum_out) {
      go_out = Identity (go_in)
      two = Constant <value = int64 {2}> ()
      none = Constant <value = int64 {0}> ()
      half = Mod (i, two)
      even = Equal (half, none)
      sum_out = If (even) <
         then_branch: graph = take () => (float taken) { item = Gather (items, i) taken = Add (sum_in, item) },
         else_branch: graph = leave () => (float left) { left = Identity (sum_in) }>
   }>
}
"""

UNTIL_LARGE = """
<ir_version: 8, opset_import: ["" : 17]>
until_large (float[3] x, float limit) => (float[3] y, rows) {
   go = Constant <value = bool {1}> ()
   y, rows = Loop (, go, x) <body: graph = body (int64 i, bool go_in, float[3] a) =>
      (bool go_out, float[3] b, float[3] row) {
      two = Constant <value = float {2.0}> ()
      b = Mul (a, two)
      row = Identity (a)
      largest = ReduceMax <keepdims: int = 0> (b)
      go_out = Less (largest, limit)
   }>
}
"""

UNEQUAL_BRANCHES = """
<ir_version: 8, opset_import: ["" : 17]>
unequal (bool c, float[n, 4] x) => (y) {
   part = If (c) <
      then_branch: graph = all () => (float[n, 4] whole) { whole = Neg (x) },
      else_branch: graph = some () => (float[m, 4] few) {
         start = Constant <value = int64[1] {0}> ()
         end = Constant <value = int64[1] {1}> ()
         few = Slice (x, start, end, start)
      }>
   y = Relu (part)
}
"""

NESTED = """
<ir_version: 8, opset_import: ["" : 17]>
nested (float[2] x, int64 outer, int64 inner) => (float[2] y, rows) {
   y, rows = Loop (outer, , x) <body: graph = body (int64 i, bool g, float[2] a) => (bool h, float[2] b, row) {
      h = Identity (g)
      b, unused = Loop (inner, , a) <body: graph = deep (int64 j, bool p, float[2] c) =>
         (bool q, float[2] d, float[2] e) {
         q = Identity (p)
         one = Constant <value = float {1.0}> ()
         e = Mul (c, x)
         d = Add (e, one)
      }>
      row = ReduceSum <keepdims: int = 1> (b)
   }>
}
"""

SQUEEZED = """
<ir_version: 8, opset_import: ["" : 17]>
squeezed (float[n, k, 4] x) => (float[n, 2] y) {
   shape = Shape (x)
   place = Constant <value = int64 {1}> ()
   middle = Gather (shape, place)
   is_one = Equal (middle, place)
   flat = If (is_one) <
      then_branch: graph = squeeze () => (flat_then) {
         axes = Constant <value = int64[1] {1}> ()
         flat_then = Squeeze (x, axes)
      },
      else_branch: graph = keep () => (flat_else) { flat_else = Identity (x) }>
   eye = Constant <value = float[4, 2] {1.0, 0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 4.0}> ()
   y = Gemm (flat, eye)
}
"""

CONVOLUTIONS = """
<ir_version: 8, opset_import: ["" : 17]>
convolutions (bool c, float[1, 16, 8, 8] x, float[16, 16, 3, 3] w) => (y) {
   a = Conv <pads = [1, 1, 1, 1]> (x, w)
   b = Conv <pads = [1, 1, 1, 1]> (a, w)
   y = If (c) <
      then_branch: graph = convolve () => (float[1, 16, 8, 8] p) { p = Conv <pads = [1, 1, 1, 1]> (b, w) },
      else_branch: graph = add () => (float[1, 16, 8, 8] q) {
         s = ReduceSum <keepdims: int = 1> (b)
         q = Add (b, s)
      }>
}
"""


DECODER = """<ir_version: 8, opset_import: ["": 17]>
decoder (float[7,4] table, float[4,7] head, int64[n] start, int64 stop) => (int64[m] tokens, float[k,4] rows) {
  most = Constant<value = int64 {5}>() go = Constant<value = bool {1}>()
  tokens, rows = Loop(most, go, start)<
    body = b (int64 i, bool c, int64[l] t) => (bool d, int64[u] s, float[4] row) {
      x = Gather(table, t) transposed = Transpose<perm = [1, 0]>(x) scores = MatMul(x, transposed)
      weights = Softmax<axis = -1>(scores) mixed = MatMul(weights, x)
      zero = Constant<value = int64[1] {0}>() one = Constant<value = int64[1] {1}>()
      shape = Shape(t) last = Sub(shape, one) final = Gather<axis = 0>(mixed, last) row = Squeeze(final, zero)
      logits = MatMul(final, head) new = ArgMax<axis = -1, keepdims = 0>(logits) s = Concat<axis = 0>(t, new)
      same = Equal(new, stop) flat = Squeeze(same, zero) d = Not(flat)
    }>
}"""


def decoder_feeds(length: int, stop: int) -> dict[str, Array]:
    """Weights of the decoder, its first tokens, and the one that ends it."""
    tokens = {"start": np.arange(length, dtype=np.int64), "stop": np.array(stop)}
    return {"table": numbers(7, 4), "head": numbers(4, 7, seed=1), **tokens}


def model(text: str) -> onnx.ModelProto:
    """A model from ONNX's own text."""
    made = parser.parse_model(text)
    for output in made.graph.output:
        if not output.type.HasField("tensor_type"):
            output.ClearField("type")
    return made


def scan_model(axes: Sequence[int], directions: Sequence[int], shape: Sequence[int]) -> onnx.ModelProto:
    """A Scan with one state and one scanned input, whose rows are collected along another axis."""
    part = [size for k, size in enumerate(shape) if k != axes[0] % len(shape)]
    float_ = onnx.TensorProto.FLOAT

    def info(name: str, dims: Sequence[int]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, float_, list(dims))

    body = helper.make_graph(
        [helper.make_node("Add", ["s", "p"], ["t"]), helper.make_node("Exp", ["p"], ["r"])],
        "body",
        [info("s", part), info("p", part)],
        [info("t", part), info("r", part)],
    )
    node = helper.make_node(
        "Scan",
        ["start", "x"],
        ["last", "rows"],
        name="scan",
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[axes[0]],
        scan_output_axes=[axes[1]],
        scan_input_directions=[directions[0]],
        scan_output_directions=[directions[1]],
    )
    outputs = [onnx.ValueInfoProto(name=name) for name in ("last", "rows")]
    graph = helper.make_graph([node], "scan", [info("start", part), info("x", shape)], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check_on_cpu(made: onnx.ModelProto, *feeds: Mapping[str, Array]) -> None:
    """One engine for the CPU gives for all feeds, one after the other, what onnxruntime gives."""
    engine = compile(made, "cpu")
    for feed in feeds:
        results = engine.run(feed).values()
        for got, want in zip(results, run_onnxruntime(made, feed), strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
