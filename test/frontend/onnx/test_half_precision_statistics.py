"""Statistics of networks in half precision, whose squares and reciprocals are beyond its range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import Array, numbers, one_node, run_reference

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases

_MICROSOFT = {"domain": "com.microsoft"}


def _rows(*shape: int) -> Array:
    """Numbers of which the last are equal, far from zero, or both."""
    x = numbers(*shape)
    x[0, 0], x[-1, -1], x[0, -1] = 0.0, 3.0, 700.0 * x[0, -1]
    return x


_CASES: list[tuple[str, list[Array], dict[str, Any]]] = [
    ("LayerNormalization", [_rows(3, 4, 8), numbers(8)], {"epsilon": 1e-12}),
    ("InstanceNormalization", [_rows(2, 3, 8), numbers(3), numbers(3)], {}),
    ("GroupNormalization", [_rows(2, 4, 8), numbers(4), numbers(4)], {"num_groups": 2, "opset": 21}),
    ("MeanVarianceNormalization", [_rows(2, 3, 5, 5)], {}),
    ("LpNormalization", [_rows(2, 3, 8)], {"p": 2}),
    ("LpNormalization", [_rows(2, 3, 8)], {"p": 1}),
    ("ReduceL2", [_rows(2, 3, 8)], {"axes": [2]}),
    ("ReduceLogSum", [np.full((2, 3, 200), 600.0)], {"axes": [2]}),
    ("SimplifiedLayerNormalization", [_rows(3, 4, 8), numbers(8)], {"epsilon": 1e-12}),
    (
        "SkipLayerNormalization",
        [_rows(3, 4, 8), np.zeros((3, 4, 8)), numbers(8)],
        {"epsilon": 1e-12, **_MICROSOFT},
    ),
]


@pytest.mark.parametrize(("op_type", "arrays", "attributes"), _CASES, ids=[case[0] for case in _CASES])
@pytest.mark.parametrize("precision", ["import", "fp32", "fp16"])
def test_statistics_stay_in_range(
    op_type: str, arrays: list[Array], attributes: dict[str, Any], precision: str
) -> None:
    rounded = [array.astype(np.float16) for array in arrays]
    (want,) = run_reference(*one_node(op_type, [one.astype(np.float32) for one in rounded], **attributes))
    model, feeds = one_node(op_type, rounded, **attributes)
    ctx = RtContext()
    module = import_model(model, ctx)
    if precision != "import":
        run_phases(module, ctx, last="fusion", options=PipelineOptions("cuda", precision))
    (found,) = interpret(module, ctx, feeds).values()
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.astype(np.float32), want, rtol=4e-3, atol=4e-3 * np.abs(want).max())
