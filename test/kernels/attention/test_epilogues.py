"""Attention whose results are rounded to int8 in the launch that computes them."""

from __future__ import annotations

import numpy as np
import pytest
from attentions import Attention
from gpu_kernels import lower_to_threads
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan

CASES = {
    "generic": Attention(1, 2, 17, 33, 16, 16, ending="i8"),
    "cuda_flash": Attention(2, 3, 45, 45, 16, 24, mask="add", ending="i8"),
    "cuda_groups": Attention(2, 2, 140, 140, 64, 64, packed=True, mask="add", ending="i8"),
    "cuda_few_queries": Attention(1, 2, 3, 70, 16, 16, mask="add", ending="i8"),
}


@pytest.mark.parametrize("tactic", CASES)
def test_integers(tactic: str) -> None:
    case = CASES[tactic]
    module, context = parse_module(case.text())
    inputs = case.inputs()
    wanted = interpret(module, context, inputs)["y"]
    found = run_plan(lower_to_threads(module, context, tactic), context, inputs)["y"]
    assert wanted.dtype == found.dtype == np.int8
    assert np.ptp(wanted) > 20
    steps = np.abs(found.astype(np.int16) - wanted)
    assert steps.max() <= 1
    assert (steps == 1).mean() < 0.02
