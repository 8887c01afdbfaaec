"""What the fusion benchmark counts behind the passes, and the table of it."""

from __future__ import annotations

from fusion_launches import Counted, counted_in, table
from lowered_network import parse_module

from mlirt.builder.plan_writer.manifest import manifest_of
from mlirt.passes.pipeline import PipelineOptions, run_phases

_COPY_AND_PRODUCT = """
func.func @main(%x: tensor<256x512xf16> {trt.name = "x"}) -> (tensor<512x256xf16> {trt.name = "y"}) {
  %w = trt.constant {value = dense<0.5> : tensor<512x256xf16>} : tensor<512x256xf16>
  %p = trt.matrix_multiply %x, %w : (tensor<256x512xf16>, tensor<512x256xf16>) -> tensor<256x256xf16>
  %s = trt.softmax %p {axis = 1 : i64} : (tensor<256x256xf16>) -> tensor<256x256xf16>
  %y = trt.matrix_multiply %w, %s : (tensor<512x256xf16>, tensor<256x256xf16>) -> tensor<512x256xf16>
  func.return %y : tensor<512x256xf16>
}
"""


def test_what_the_device_copies_by_tensor_maps_counts() -> None:
    module, ctx = parse_module(_COPY_AND_PRODUCT)
    run_phases(module, ctx, options=PipelineOptions("cuda", "fp16"))
    found = counted_in(manifest_of(module), "network fp16")
    tensor, square = 512 * 256 * 2, 256 * 256 * 2
    assert found.kernels == ["matmul", "softmax", "matmul"]
    weights = found.least - 2 * tensor
    assert weights in (tensor, 2 * tensor)  # one for both products, or one packed for each
    assert found.moved == (2 * tensor + square) + 2 * square + (2 * tensor + square)


def test_table_counts_what_is_wanted() -> None:
    rows = [
        Counted("2/a fp32", ["matmul"], 100, 100),
        Counted("2/b fp32", ["copy", "convolution", "rows"], 300, 100),
        Counted("2/a fp16", ["matmul"], 120, 100),
    ]
    assert table(rows) == [
        "fp32: 2 modules, launches 2.00 in the mean, most 3, 1 over 2; "
        "bytes moved over the least 2.00 in the median, most 3.00, 1 within 1.2",
        "fp16: 1 modules, launches 1.00 in the mean, most 1, 0 over 2; "
        "bytes moved over the least 1.20 in the median, most 1.20, 1 within 1.2",
    ]
