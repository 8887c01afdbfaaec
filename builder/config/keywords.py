"""The settings of `BuildConfig` as keywords, for checkers and editors; a test holds the two together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from mlirt.builder.calibration.ranges_for_build import CalibrationLike, Range
    from mlirt.builder.config.build_config import Array, Progress
    from mlirt.builder.tactics.algorithm_selector import AlgorithmSelector
    from mlirt.builder.tactics.timing_cache import TimingCache
    from mlirt.frontend.onnx.graph_inputs import Shapes
    from mlirt.passes.pipeline_edits import Pipeline
    from mlirt.passes.remarks import Remarks


class Keywords(TypedDict, total=False):
    """Every setting but `precision` and `profiles`, which `mlirt.compile` takes by position too."""

    target: str
    input_shapes: Shapes | None
    constants: Mapping[str, Array] | None
    input_formats: Sequence[str]
    output_formats: Sequence[str]
    direct_io: bool
    outputs: Sequence[str]
    debug: Sequence[str]
    state: Mapping[str, str] | None
    initial_state: Mapping[str, Array] | None
    calibration: CalibrationLike | None
    dynamic_ranges: Mapping[str, Range] | None
    layer_precisions: Mapping[str, str] | None
    obey_layer_precisions: bool
    timing_cache: TimingCache | str | os.PathLike[str] | None
    heuristic: bool
    cpu_timing: bool
    algorithm_selector: AlgorithmSelector | None
    reject_empty_algorithms: bool
    avg_timing_iterations: int
    min_timing_iterations: int
    tactic_sources: Sequence[str]
    workspace: int | None
    device: str | None
    cpu: str | None
    gpu: str | None
    system: str | None
    refittable: bool
    fast_math: str | Sequence[str]
    pipeline: Pipeline | None
    plugins: Sequence[str | os.PathLike[str]]
    weights: str | os.PathLike[str] | None
    from_phase: str | None
    progress: Progress | None
    dump_phases: str | os.PathLike[str] | None
    remarks: Remarks | None
    spin_ms: float | None
    shape_cache_mb: float | None
    threads: int | None
    streams: int | None
