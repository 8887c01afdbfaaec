"""Overflows of FP16, as Polygraphy's `run --validate` finds them (tensorrt-features.md#4.12)."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import CollectingLogger, constant, new_network
from network_engines import built, cpu_config, run

import mlirt as trt


@pytest.mark.parametrize(("dtype", "invalid"), [(trt.float16, ["big"]), (trt.float32, [])])
def test_infinities_are_in_the_tensor_that_overflows(dtype: trt.DataType, invalid: list[str]) -> None:
    """tensorrt-features.md#4.12: 4 products of 100 and 300 are beyond the largest number of FP16, and in FP32 not.

    What `polygraphy run --trt --fp16 --validate --trt-outputs mark all` does: each tensor is an output, and is looked
    through for what is not finite; the tensor behind is finite, so that the first one is named alone.
    """
    logger = CollectingLogger()
    network = new_network(logger)
    kind = trt.nptype(dtype)
    x = network.add_input("x", dtype, (2, 4))
    none = trt.MatrixOperation.NONE
    big = network.add_matrix_multiply(x, none, constant(network, np.full((4, 4), 300, kind)), none).get_output(0)
    limit = constant(network, np.full((1, 1), 4, kind))
    small = network.add_elementwise(big, limit, trt.ElementWiseOperation.MIN).get_output(0)
    for tensor, name in ((big, "big"), (small, "small")):
        tensor.name = name
        network.mark_output(tensor)
    engine = built(network, cpu_config(logger, trt.BuilderFlag.FP16), logger)
    found = run(engine.create_execution_context(), {"x": np.full((2, 4), 100, kind)})
    assert found is not None
    assert {name: array.dtype for name, array in found.items()} == dict.fromkeys(("big", "small"), np.dtype(kind))
    assert [name for name, array in found.items() if not np.isfinite(array).all()] == invalid
    assert (found["small"] == 4).all()
