"""Engines of networks that are written with the borders of loops and conditionals: the interpreter and the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from lowered_network import parse_module

from mlirt.builder.build import build
from mlirt.builder.reference_engine import ReferenceEngine
from mlirt.runtime.engine_interface import EngineLike

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def engines(text: str) -> list[EngineLike]:
    """The interpreter first, then the engine for the CPU."""
    module, ctx = parse_module(text)
    return [ReferenceEngine(module.clone(), ctx), build(module, ctx, "cpu")]


def check(runs: Sequence[EngineLike], feeds: Mapping[str, Array], expected: Sequence[Array]) -> None:
    """Assert that all engines give the expected outputs."""
    for engine in runs:
        for got, want in zip(engine.run(feeds).values(), expected, strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-5)
