"""A model with dynamic lengths and its static forms agree: the same numbers, or both are refused."""

from __future__ import annotations

import numpy as np
import onnx
from fuzz_cases import Case
from fuzz_graphs import Array


def static_form(model: onnx.ModelProto, feeds: dict[str, Array]) -> onnx.ModelProto:
    """The same network, whose inputs have the lengths of one run."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for value in result.graph.input:
        if value.name in feeds and value.type.HasField("tensor_type"):
            dims = value.type.tensor_type.shape.dim
            for dim, length in zip(dims, feeds[value.name].shape, strict=True):
                dim.dim_value = length
    return result


def static_results(case: Case, target: str) -> list[dict[str, Array] | str]:
    """What the static form of each run gives, or why it is refused.

    Raises `UnsupportedError` where it cannot be built.
    """
    import mlirt

    results: list[dict[str, Array] | str] = []
    for feeds in case.runs:
        try:
            found = mlirt.compile(static_form(case.model, feeds), target=target).run(feeds)
            results.append({name: np.asarray(value) for name, value in found.items()})
        except mlirt.UnsupportedError:
            raise
        except mlirt.MlirtError as error:
            results.append(f"{type(error).__name__}: {error}")
    return results
