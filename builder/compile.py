"""`mlirt.compile`: a trained network in, an engine for one target out."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import UnitAttr

from mlirt.builder.build_keys import model_key
from mlirt.builder.device_choice import with_device
from mlirt.builder.from_torch.model_kinds import is_source_network, is_torch_model
from mlirt.builder.host import gpu_is_here, log_target
from mlirt.builder.inner_tensors import InnerOutputs, debugged, give_outputs
from mlirt.builder.ir_input import is_ir, read_ir, refuse_other_target
from mlirt.builder.kept_state import chosen_state
from mlirt.builder.plan_cache import TAKEN, PlanCache
from mlirt.builder.plan_profiles import shape_ranges
from mlirt.builder.profiles import Profile, Profiles, pinned_shapes, read_profiles, widest
from mlirt.builder.usual_sizes import name_usual_sizes
from mlirt.counted_warnings import warn, warnings_so_far
from mlirt.dialects.context import RtContext
from mlirt.dialects.layer_precisions import OBEYED, set_layer_precisions
from mlirt.dialects.locations import names
from mlirt.dialects.pass_plugins import with_plugins
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.errors import InvalidInputError, reports_shortage
from mlirt.passes.pipeline_edits import Pipeline
from mlirt.passes.remarks import Remarks, recording
from mlirt.runtime.engine import Engine
from mlirt.runtime.garbage_collection import rare_collections

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.builder.calibration.ranges_for_build import CalibrationLike, Range
    from mlirt.builder.from_torch.model_kinds import SourceNetwork
    from mlirt.builder.tactics.algorithm_selector import AlgorithmSelector
    from mlirt.builder.tactics.timing_cache import TimingCache
    from mlirt.frontend.onnx.graph_inputs import Shapes
    from mlirt.runtime.engine_interface import EngineLike

    ModelSource: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto"
    # Modules and exported programs of PyTorch; checkers do not know it here.
    TorchModel: TypeAlias = Any
    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

TARGETS = ("auto", "cpu", "cuda", "reference")
PRECISIONS = ("fp32", "tf32", "fp16", "int8", "int8+fp16")

Progress: TypeAlias = "Callable[[str, int, int], None]"


@with_plugins
@with_device
@reports_shortage("the build")
@rare_collections()
def compile(
    model: ModelSource | SourceNetwork | TorchModel,
    inputs_or_target: str | Sequence[Any] | None = None,
    precision: str = "fp32",
    profiles: Profiles | None = None,
    *,
    target: str | None = None,
    example_keywords: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    input_shapes: Shapes | None = None,
    constants: Mapping[str, Array] | None = None,
    progress: Progress | None = None,
    dump_phases: str | os.PathLike[str] | None = None,
    timing_cache: TimingCache | str | os.PathLike[str] | None = None,
    heuristic: bool = False,
    algorithm_selector: AlgorithmSelector | None = None,
    avg_timing_iterations: int = 10,
    min_timing_iterations: int = 7,
    spin_ms: float | None = None,
    shape_cache_mb: float | None = None,
    threads: int | None = None,
    streams: int | None = None,
    calibration: CalibrationLike | None = None,
    dynamic_ranges: Mapping[str, Range] | None = None,
    layer_precisions: Mapping[str, str] | None = None,
    obey_layer_precisions: bool = False,
    refittable: bool = False,
    tactic_sources: Sequence[str] = (),
    workspace: int | None = None,
    input_formats: Sequence[str] = (),
    output_formats: Sequence[str] = (),
    direct_io: bool = False,
    plugins: Sequence[str | os.PathLike[str]] = (),
    pipeline: Pipeline | None = None,
    weights: str | os.PathLike[str] | None = None,
    from_phase: str | None = None,
    remarks: Remarks | None = None,
    state: Mapping[str, str] | None = None,
    initial_state: Mapping[str, Array] | None = None,
    outputs: Sequence[str] | InnerOutputs = (),
    debug: Sequence[str] = (),
    device: str | None = None,
) -> EngineLike:
    """Build an engine for an ONNX model (a path, bytes or a ModelProto), a PyTorch module or program, or IR text.

    IR may be of any phase; it is in a file whose name ends in `.mlir`.

    `mlirt.compile(module, (x,))` exports the module for inputs like these first; `mlirt.compile(program)` takes what
    `torch.export.export` gives. Their engines are called like the module: `engine(x)`.

    inputs_or_target: the example inputs of a PyTorch module; of other models the target.
    target: "cuda", "cpu", "reference" (NumPy), or "auto", the default: cuda where there is a GPU, else cpu.
    example_keywords, dynamic_shapes: of a PyTorch module, as `torch.export.export` has them. A `torch.export.Dim`
        becomes a dimension of its name.
    precision: "fp32"; "tf32", which lets the matrix units of a GPU read float32 with 10 bits of mantissa; "fp16", which
        permits half precision; "int8", which computes products on bytes, or "int8+fp16". Where no half precision is to
        be had, as on a CPU, it is float32 all the same. A network that is in half precision itself is computed in
        float32 unless that is permitted; its inputs and outputs keep their types.
    profiles: for inputs with dynamic dimensions, (min, opt, max) shapes by name, or several such mappings. The plan
        keeps them: the shapes of a run are within one of them, or it is refused with `InvalidInputError`. Dimensions
        without a choice become constants; choices that concern speed alone are made for the first one's opt.
    input_shapes: other dimensions for inputs: numbers, or names and expressions for dynamic ones. For a sequence the
        shape of each item, whose input then is called `name[0]`, `name[1]`, ..; None for an optional without a value.
    constants: values for inputs that then are built in.
    progress: called with a text, the steps done and the steps in all.
    dump_phases: a folder for the IR after each phase, one text file a phase.
    timing_cache: measured times of tactics, or a file of them: read, and written with the new ones. For "cuda".
    heuristic: do not measure tactics on the GPU, believe the estimates of their times.
    avg_timing_iterations, min_timing_iterations: a tactic is measured in so many runs at once, so many times over.
    algorithm_selector: asked which tactics each layer may have, and told which it got. For "cuda".
    spin_ms: on a CPU, for how many milliseconds after a run idle workers wait for the next one before they sleep; 0 is
        not at all, None what the environment variable MLIRT_SPIN_MS says, else up to 50, as it follows from when runs
        come and who else wants the processors.
    shape_cache_mb: how many MiB each context may keep of what runs have worked out for their shapes, so that it is
        ready when these come again; 0 keeps the last one alone, None what MLIRT_SHAPE_CACHE_MB says, else 64.
    threads, streams: the threads of a CPU that runs are computed with, and how many runs may go on at once, for each of
        which there is its share of the threads. As in `mlirt.load`; they do not change the plan.
    calibration: for "int8" what `mlirt.calibrate` gives, a calibration cache (a path or its bytes), or a calibrator
        with TensorRT's interface. A network that quantises itself needs none. For "int8+fp16" on a GPU a batch of its
        samples shows whether half precision holds the results of all layers (`AccuracyWarning`, see `check_range`).
    dynamic_ranges: for "int8" the range (min, max) of tensors by name, in place of the calibration's.
    layer_precisions: what layers, by name, compute in: "fp32", "fp16" or "int8", as far as `precision` permits it. A
        name that no layer has is warned of; `*` stands for all layers that are not named.
    obey_layer_precisions: refuse a network in which a layer cannot have what it is asked for; else that is a warning.
    refittable: keep the network in the plan, so that `mlirt.refit` can give it other weights.
    tactic_sources: libraries whose kernels are measured beside mlirt's own: "CUBLAS_LT" for products, "CUDNN" for
        convolutions. A plan in which one was the fastest needs it where it runs. For "cuda".
    workspace: the most bytes beside its tensors that a layer may take. For "cuda".
    input_formats, output_formats: the element type and the formats that each input or output may have, or all of them,
        such as "fp16:chw" or "int8:chw4+chw32" (trtexec's names; bytes stand for numbers by the tensor's range).
    direct_io: refuse a network in which a layer needs an input or output in another format.
    plugins: Python files with passes, ops, tactics or ONNX handlers of your own, which count for this build
        (docs/research.md).
    pipeline: the compiler's pipeline with changes: `mlirt.Pipeline.default().after("fuse-pointwise", "my-pass{x=1}")`.
        It is kept in the plan (`engine.pipeline`).
    weights: for IR the safetensors file of its weights; else the one beside it is read.
    remarks: collects what the passes say of the places where they acted or declined: `mlirt.Remarks()`.
    state: inputs and the outputs that they are in the next run: `{"h0": "h1"}`. Both stay in the engine, for each
        context and sequence of runs apart: `engine.run(feeds, sequence="a")`, `engine.state`, `engine.reset_state()`.
    initial_state: by input what the first run of a sequence begins with; zeros where it is not said.
    outputs: inner tensors of the network, by its names for them, that become outputs behind its own.
    debug: inner tensors that a second engine computes beside this one, which stays as it is (`engine.debug(feeds)`,
        `engine.set_debug_listener`).
    device: what kernels are chosen for: a name such as "h100-pcie" or "cpu-avx2", with other figures such as
        "h200+processors=148", or a .toml file (docs/architecture.md); else the GPU that is here, or an H200.
    from_phase: for IR the first phase that it has to go through; else its dialects tell.

    An engine for "cuda" can be built and saved where there is no GPU; running it raises `PlanError`.
    Raises `InvalidModelError` for a damaged model, `UnsupportedError` for one that uses what is not supported yet,
    `InvalidInputError` for arguments that do not fit, `CompileError` where a pass or a back end fails.
    """
    arguments = dict(locals())
    if is_torch_model(model):
        from mlirt.builder.from_torch.compile_module import compile_module

        return compile_module(arguments)
    if example_keywords is not None or dynamic_shapes is not None:
        raise InvalidInputError("example_keywords and dynamic_shapes are for PyTorch modules")
    if debug:
        return debugged(arguments)
    inner = InnerOutputs.of(outputs)
    asked = _one_target(inputs_or_target, target)
    chosen = chosen_target(asked)
    if precision not in PRECISIONS:
        raise InvalidInputError(f"precision {precision!r} is not known; expected one of {', '.join(PRECISIONS)}")
    ctx = RtContext()
    allowed = read_profiles(profiles)
    cache = PlanCache()
    arguments |= {"name": _name_of(model), "profiles": allowed}
    # The one target has two places, of which the key knows one.
    arguments.pop("inputs_or_target")
    key = None if is_source_network(model) or not cache.is_open else model_key(model, chosen, arguments)
    plan = None if key is None else cache.get(key)
    if plan is not None:
        if progress is not None:
            progress(TAKEN, 0, 1)
        waits = chosen == "cuda" and not gpu_is_here()
        return Engine(plan, spin_ms, shape_cache_mb=shape_cache_mb, threads=threads, streams=streams, waits=waits)
    warned = warnings_so_far()
    covered = widest(allowed)
    first: str | None = None
    if is_ir(model):
        _refuse_for_ir(input_shapes=input_shapes, constants=constants)
        module, first, text = read_ir(Path(cast("str", model)), ctx, weights, from_phase)
        chosen = refuse_other_target(text, first, chosen, asked)
        chosen_pipeline = _checked(pipeline, chosen, precision, first)
    else:
        if weights is not None or from_phase is not None:
            raise InvalidInputError("weights and from_phase are for IR, a file whose name ends in .mlir")
        chosen_pipeline = _checked(pipeline, chosen, precision)
        module = imported(model, ctx, covered, input_shapes or {}, constants, inner, keeps_weights=refittable)
    give_outputs(module, inner)
    set_layer_precisions(module, asked_precisions(module, layer_precisions or {}))
    if obey_layer_precisions:
        module.attributes[OBEYED] = UnitAttr()
    if "int8" in precision and not _is_quantized_already(first, calibration, dynamic_ranges):
        from mlirt.builder.calibration.ranges_for_build import Int8Choice, prepare_int8

        choice = Int8Choice(calibration, dynamic_ranges or {})
        half = chosen == "cuda" and "fp16" in precision
        prepare_int8(module, ctx, chosen, choice, covered, progress, half=half)
    elif "int8" not in precision and (calibration is not None or dynamic_ranges):
        raise InvalidInputError(f"calibration and ranges are for precision int8, but the precision is {precision}")
    kept = chosen_state(module, state, initial_state)
    name_usual_sizes(module, covered)
    if input_formats or output_formats or direct_io:
        from mlirt.builder.io_formats import give_types

        give_types(module, ctx, chosen, input_formats, output_formats, direct=direct_io)
    if chosen == "reference":
        if kept:
            raise InvalidInputError("target reference keeps no state: give it as inputs, or take target cpu")
        from mlirt.builder.reference_engine import ReferenceEngine

        if "int8" in precision and first in (None, "cleanup"):
            from mlirt.passes.pipeline import run_phases

            run_phases(module, ctx, last="cleanup")
        return ReferenceEngine(module, ctx, _name_of(model), shape_ranges(allowed))
    from mlirt.builder.build import BuildOptions, build

    folder = None if dump_phases is None else Path(dump_phases)
    options = BuildOptions(
        precision,
        progress,
        folder,
        _name_of(model),
        refittable=refittable,
        profiles=allowed,
        first=first,
        pipeline=chosen_pipeline,
        state=kept,
        frees_weights=True,
    )
    if key is not None and warnings_so_far() == warned:
        options = replace(options, kept_as=[key])
    if chosen != "cuda":
        with recording(remarks):
            return build(module, ctx, chosen, options, spin_ms, shape_cache_mb, threads=threads, streams=streams)
    from mlirt.builder.tactics.tuning import tuning

    calls, rounds = avg_timing_iterations, min_timing_iterations
    with (
        tuning(
            timing_cache,
            algorithm_selector,
            heuristic=heuristic,
            calls=calls,
            rounds=rounds,
            sources=tactic_sources,
            workspace=workspace,
        ) as choice,
        recording(remarks),
    ):
        options = replace(options, tuning=choice)
        return build(module, ctx, chosen, options, shape_cache_mb=shape_cache_mb, threads=threads, streams=streams)


def _refuse_for_ir(**given: object) -> None:
    for name, value in given.items():
        if value:
            raise InvalidInputError(f"{name} is for ONNX models; the inputs of IR are those that it says")


def _is_quantized_already(first: str | None, calibration: object, ranges: object) -> bool:
    """Whether a network is IR behind the phase `cleanup`, which calibrations are for."""
    if first in (None, "import", "cleanup"):
        return False
    if calibration is not None or ranges:
        raise InvalidInputError(f"calibration and ranges are for networks before the phase quantization, not {first}")
    return True


def _checked(pipeline: Pipeline | None, target: str, precision: str, first: str | None = None) -> Pipeline:
    """The pipeline to run; raises `InvalidInputError` where it cannot be, before anything is read."""
    if pipeline is None or not pipeline.edits:
        return Pipeline()
    if target == "reference":
        raise InvalidInputError("target reference runs the network without passes, so that no pipeline can be changed")
    pipeline.check(target, precision, first)
    return pipeline


def asked_precisions(module: ModuleOp, asked: Mapping[str, str]) -> dict[str, str]:
    """The format of each layer: `*` stands for those that compute with floating-point numbers and are not named."""
    found = {name: text for name, text in asked.items() if name != "*"}
    _warn_of_unknown_layers(module, found)
    if "*" in asked:
        for op in module.walk():
            if isinstance(op, TensorOp) and not isinstance(op, ConstantOp) and _has_floats(op):
                found |= {name: asked["*"] for name in names(op.location) if name not in found}
    return found


def _one_target(positional: str | Sequence[Any] | None, named: str | None) -> str:
    if positional is not None and not isinstance(positional, str):
        raise InvalidInputError("example inputs are for PyTorch modules; a target is a name")
    if positional is not None and named is not None:
        raise InvalidInputError(f"the target is given twice: {positional!r} and {named!r}")
    return positional or named or "auto"


def _has_floats(op: TensorOp) -> bool:
    return any(is_float(element_of(result.type)) for result in op.results)


def _warn_of_unknown_layers(module: ModuleOp, asked: Mapping[str, str]) -> None:
    layers = {name for op in module.walk() for name in names(op.location)} if asked else set[str]()
    for name in sorted(asked.keys() - layers):
        near = difflib.get_close_matches(name, sorted(layers), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        warn(f"layer_precisions: the network has no layer {name!r}{hint}", stacklevel=3)


def _name_of(model: ModelSource | SourceNetwork) -> str:
    """The name of the graph, or of the model's file."""
    if isinstance(model, bytes):
        return "network"
    if is_source_network(model):
        return model.name
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        return path.parent.name if path.stem == "model" and path.parent.name else path.stem
    return model.graph.name or "network"


def chosen_target(target: str) -> str:
    """cuda or cpu for "auto", which the log tells; raises `InvalidInputError` for a name that is none."""
    if target not in TARGETS:
        raise InvalidInputError(f"target {target!r} is not known; expected one of {', '.join(TARGETS)}")
    return log_target(target)


def imported(
    model: ModelSource | SourceNetwork,
    ctx: RtContext,
    profiles: Mapping[str, Profile] | None,
    shapes: Shapes,
    constants: Mapping[str, Array] | None,
    inner: InnerOutputs | None = None,
    *,
    keeps_weights: bool = False,
) -> ModuleOp:
    """The network of a model, its dimensions as profiles and shapes say, with inner tensors among its outputs."""
    if is_torch_model(model):
        from mlirt.builder.from_torch.exported_network import exported_network

        return exported_network(model).import_into(ctx, keeps_weights=keeps_weights)
    if is_source_network(model):
        if shapes or constants:
            raise InvalidInputError("input_shapes and constants are for ONNX models; export with other inputs")
        return model.import_into(ctx, keeps_weights=keeps_weights)
    from mlirt.frontend.onnx.graph_inputs import input_dims
    from mlirt.frontend.onnx.importer import import_model
    from mlirt.frontend.onnx.model_reader import read_model

    if profiles:
        shapes = {**shapes, **pinned_shapes(profiles, input_dims(read_model(model).proto, shapes))}
    names = () if inner is None else inner.names
    return import_model(model, ctx, shapes, constants, keeps_weights=keeps_weights, outputs=names)
