"""Attention by warpgroups on a GPU with each shape that a block can have, over many tiles of queries and keys."""

from __future__ import annotations

import numpy as np
import pytest
from attentions import Attention
from contractions import TOLERANCE
from device_engine import engine_of
from lowered_network import parse_module
from repeated_runs import differing_runs

from mlirt.dialects.device_files import gpu_device
from mlirt.dialects.interpreter import interpret
from mlirt.kernels.attention.cuda.group_shape import group_shapes

pytestmark = pytest.mark.gpu

SHAPES = [(width, shape.name) for width in (64, 96, 128) for shape in group_shapes(width, width, gpu_device("h200"))]


@pytest.mark.parametrize("causal", [False, True], ids=["all keys", "causal"])
@pytest.mark.parametrize(("width", "shape"), SHAPES)
def test_attention(width: int, shape: str, causal: bool) -> None:
    case = Attention(8, 9, 300, 700, width, width, scale=width**-0.5, last_key=100 if causal else None)
    text, inputs = case.text(), case.inputs()
    module, context = parse_module(text)
    (want,) = interpret(module, context, inputs).values()
    engine = engine_of(text.replace("reduced =", f'fused.tactic = "cuda_groups:{shape}", reduced ='))
    (found,) = engine.run(inputs).values()
    bound = TOLERANCE["f16"] * max(1.0, float(np.abs(want.astype(np.float64)).max()))
    np.testing.assert_allclose(found.astype(np.float64), want.astype(np.float64), rtol=0, atol=bound)
    assert differing_runs(engine, inputs, 6) == []
