"""From a network of layers and a configuration to the bytes of a plan."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from mlirt.builder.api.memory_report import memory_reported, report_memory
from mlirt.builder.api.optimization_profile import IOptimizationProfile
from mlirt.builder.api.placement import check_devices, compatible_architecture
from mlirt.builder.api.precision_constraints import constrain_precisions
from mlirt.builder.api.sparsity import report_sparsity
from mlirt.builder.api.strong_types import check_strong_types
from mlirt.builder.api.tensorrt_limits import check_loops, check_scales
from mlirt.builder.calibration.calibrator_run import HAS_IMPLICIT_BATCH
from mlirt.builder.calibration.ranges_for_build import Int8Choice, prepare_int8
from mlirt.builder.config.build_config import BuildConfig
from mlirt.builder.config.checks import one_of
from mlirt.builder.device_choice import asking
from mlirt.builder.host import automatic_target
from mlirt.builder.io_formats import AllowedFormats, choose_formats
from mlirt.builder.profiles import Profile, pinned_shapes, widest
from mlirt.builder.tactics.tuning import tuning_of
from mlirt.builder.usual_sizes import name_usual_sizes
from mlirt.dialects.context import RtContext
from mlirt.dialects.symbolic_text import to_json
from mlirt.errors import InvalidModelError, MlirtError
from mlirt.frontend.network.known_values import MAX_ELEMENTS
from mlirt.frontend.network.largest_shapes import largest_shape
from mlirt.frontend.network.module import network_module
from mlirt.frontend.network.tensor import ALL_FORMATS
from mlirt.passes.quantization.explicit_networks import has_conversions
from mlirt.runtime.api.implicit_batch import IMPLICIT_BATCH
from mlirt.runtime.api.machine import machine_of
from mlirt.runtime.debug_tensors import with_debug
from mlirt.runtime.kept_network import without_network
from mlirt.runtime.plan_file import plan_bytes
from mlirt.tensorrt.build_enums import BuilderFlag, QuantizationFlag
from mlirt.tensorrt.data_types import DataType, data_type
from mlirt.tensorrt.format_descriptions import format_in_log
from mlirt.tensorrt.layer_enums import LayerType
from mlirt.tensorrt.run_enums import TensorFormat

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.builder.api.builder_config import IBuilderConfig
    from mlirt.frontend.network.definition import INetworkDefinition
    from mlirt.frontend.network.tensor import ITensor
    from mlirt.runtime.plan_file import Plan
    from mlirt.tensorrt.reporting import Reporter


def network_plan(network: INetworkDefinition, config: IBuilderConfig, reporter: Reporter) -> bytes:
    """The plan; the network stays as it is and can be built again (tensorrt-features.md#3.16)."""
    check_devices(network, config, reporter)
    check_loops(network, config, reporter)
    check_strong_types(network, config)
    with (
        asking(None, gpu=compatible_architecture(config)),
        memory_reported("Build of the engine", config.target, reporter),
    ):
        plan = _plan_with_direct_io(network, config, reporter)
    _report_fusions(plan, network, reporter)
    _report_formats(plan, reporter)
    if config.get_flag(BuilderFlag.SPARSE_WEIGHTS):
        report_sparsity(network, reporter)
    report_memory(plan, reporter)
    if network.graph.debug:
        with _debug_as_outputs(network):
            plan = with_debug(plan, _network_plan(network, config, reporter, is_beside=True))
    return _with_settings(plan, config, network)


def _plan_with_direct_io(network: INetworkDefinition, config: IBuilderConfig, reporter: Reporter) -> Plan:
    """The plan; STRICT_TYPES asks for DIRECT_IO, and warns where it cannot be had (tensorrt-features.md#3.5)."""
    asked = config.get_flag(BuilderFlag.DIRECT_IO)
    if asked or not config.get_flag(BuilderFlag.STRICT_TYPES):
        return _network_plan(network, config, reporter, direct=asked)
    try:
        return _network_plan(network, config, reporter, direct=True)
    except MlirtError as error:
        plan = _network_plan(network, config, reporter)
        reporter.warning(f"STRICT_TYPES: built without direct inputs and outputs: {error}")
        return plan


@contextmanager
def _debug_as_outputs(network: INetworkDefinition) -> Generator[None]:
    """Let the debug tensors be all that the network returns meanwhile."""
    graph = network.graph
    own, graph.outputs = graph.outputs, list(graph.debug)
    try:
        yield
    finally:
        graph.outputs = own


def _network_plan(
    network: INetworkDefinition,
    config: IBuilderConfig,
    reporter: Reporter,
    *,
    is_beside: bool = False,
    direct: bool = False,
) -> Plan:
    """The plan of what the network returns; one that is beside is not refitted, and nobody chooses its algorithms."""
    target: str = one_of("auto", "cpu", "cuda")("target", config.target)
    if target == "auto":
        target, why = automatic_target()
        if not is_beside:
            reporter.info(f"The target is {target}: {why}")
    profiles = config.optimization_profiles
    _check_profiles(network, profiles)
    ctx = RtContext()
    module = network_module(network, ctx, _pinned(network, profiles), _bounds(network, profiles))
    if network.graph.max_batch_size is not None:
        from xdsl.dialects.builtin import UnitAttr

        module.attributes[HAS_IMPLICIT_BATCH] = UnitAttr()
    constrain_precisions(module, network, config, reporter, target)
    chosen = build_config(network, config, target, reporter)
    if is_beside:
        chosen = chosen.replace(refittable=False, algorithm_selector=None)
    with _warnings_in_the_log(reporter):
        _quantize(module, ctx, chosen, network, config)
        name_usual_sizes(module, _widest(profiles))
        inputs, outputs = (_allowed(tensors, direct) for tensors in (network.graph.inputs, network.graph.outputs))
        choose_formats(module, target, inputs, outputs)
        check_scales(module, network, config)
        return _plan(module, ctx, network.name or "network", chosen, reporter)


def _report_fusions(plan: Plan, network: INetworkDefinition, reporter: Reporter) -> None:
    """Say which layers became one launch, and which launch nothing any more (tensorrt-features.md#17.18)."""
    left = {record.name: None for record in network.graph.records if record.type is not LayerType.CONSTANT}
    for record in plan.manifest.layers:
        name = str(record.get("name", ""))
        for part in (name, *name.split(" + ")):
            left.pop(part, None)
        if " + " in name and record.get("family") != "reformat":
            reporter.info(f"Fused into one {record.get('family')}: {name}")
    if left:
        reporter.info(f"Removed, as the build computes them or they change nothing: {', '.join(left)}")


def _report_formats(plan: Plan, reporter: Reporter) -> None:
    """Say how inputs and outputs lie in memory (tensorrt-features.md#5.6)."""
    manifest = plan.manifest
    for kind, tensors in (("Input", manifest.given_inputs), ("Output", manifest.outputs)):
        for one in tensors:
            shape = [length if isinstance(length, int) else -1 for length in one.known_shape]
            text = format_in_log(TensorFormat[one.format], data_type(one.dtype), shape)
            reporter.verbose(f"{kind} {one.name}: {text}")


def build_config(network: INetworkDefinition, config: IBuilderConfig, target: str, reporter: Reporter) -> BuildConfig:
    """What TensorRT's configuration of a network, with ranges on its tensors, says as mlirt's, for `cpu` or `cuda`."""
    is_int8 = config.get_flag(BuilderFlag.INT8)
    graph = network.graph
    tensors = [*graph.inputs, *(output for record in graph.records for output in record.outputs)] if is_int8 else []
    return BuildConfig(
        target,
        "int8" if network.is_strongly_typed and _has_quantize_layers(network) else precision_of(config, target),
        [{name: one.shapes for name, one in profile.shapes.items()} for profile in config.optimization_profiles],
        calibration=config.int8_calibrator if is_int8 else None,
        dynamic_ranges={one.name: one.range for one in tensors if one.range is not None},
        refittable=config.get_flag(BuilderFlag.REFIT),
        timing_cache=None if config.get_flag(BuilderFlag.DISABLE_TIMING_CACHE) else config.get_timing_cache(),
        algorithm_selector=config.algorithm_selector,
        reject_empty_algorithms=config.rejects_empty_algorithms,
        heuristic=config.times_no_tactics,
        cpu_timing=config.cpu_timing,
        avg_timing_iterations=config.avg_timing_iterations,
        min_timing_iterations=config.timing_rounds,
        tactic_sources=config.measured_libraries,
        workspace=config.workspace_limit,
        progress=_progress(reporter),
    )


def _quantize(
    module: ModuleOp, ctx: RtContext, chosen: BuildConfig, network: INetworkDefinition, config: IBuilderConfig
) -> None:
    """Let the network carry the ranges of its tensors, which may mean to calibrate it (tensorrt-features.md#9.3, 9.4,
    9.18).
    """
    if "int8" not in chosen.precision:
        if has_conversions(module):
            raise InvalidModelError("the network has quantize and dequantize layers, but BuilderFlag.INT8 is not set")
        return
    profile = config.get_calibration_profile() or next(iter(config.optimization_profiles), None)
    shapes = {} if profile is None else profile.shapes
    early = config.get_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    choice = Int8Choice(chosen.calibration, chosen.dynamic_ranges, early)
    half = chosen.target == "cuda" and "fp16" in chosen.precision
    prepare_int8(module, ctx, chosen.target, choice, shapes, chosen.progress, half=half)


def _has_quantize_layers(network: INetworkDefinition) -> bool:
    return any(record.type in (LayerType.QUANTIZE, LayerType.DEQUANTIZE) for record in network.graph.records)


def _plan(module: ModuleOp, ctx: RtContext, name: str, config: BuildConfig, reporter: Reporter) -> Plan:
    from mlirt.builder.build import BuildOptions, build_plan

    options = BuildOptions.of(config, name=name)
    with tuning_of(config, config.target) as choice:
        return build_plan(module, ctx, config.target, replace(options, tuning=choice))


def _progress(reporter: Reporter) -> Callable[[str, int, int], None]:
    def progress(text: str, done: int, total: int) -> None:
        reporter.info(text if total <= 1 else f"{text} ({done} of {total})")

    return progress


@contextmanager
def _warnings_in_the_log(reporter: Reporter) -> Generator[None]:
    """What passes warn of goes to the logger; what Python says about itself, such as what it collects now, does not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for one in caught:
                reporter.warning(str(one.message))


def precision_of(config: IBuilderConfig, target: str) -> str:
    """What the flags permit, as `mlirt.compile` names it (tensorrt-features.md#4.1, 4.10)."""
    half = config.get_flag(BuilderFlag.FP16)
    if config.get_flag(BuilderFlag.INT8):
        return "int8+fp16" if half else "int8"
    if half:
        return "fp16"
    tf32 = config.get_flag(BuilderFlag.TF32) and os.environ.get("NVIDIA_TF32_OVERRIDE") != "0"
    return "tf32" if tf32 and target == "cuda" else "fp32"


def _check_profiles(network: INetworkDefinition, profiles: Sequence[IOptimizationProfile]) -> None:
    dynamic = [one.name for one in network.graph.inputs if -1 in one.shape]
    read = _shape_inputs(network)
    for one in network.graph.inputs:
        if one.name in read and one.dtype not in _types_as_shape(network, one):
            raise InvalidModelError(f"{one.name}: an input that is read as a shape is Int32, not {one.dtype.name}")
        if one.name in read and math.prod(one.shape) > MAX_ELEMENTS:
            raise InvalidModelError(
                f"{one.name}: an input that is read as a shape has at most {MAX_ELEMENTS} elements, not {one.shape}"
            )
    if not profiles:
        _check_names(network, 0, IOptimizationProfile())
    if (dynamic or read) and not profiles:
        raise InvalidModelError(
            "Network has dynamic or shape inputs, but no optimization profile has been defined. "
            f"(inputs {', '.join(dict.fromkeys([*dynamic, *read]))})"
        )
    for index, profile in enumerate(profiles):
        for name in dynamic:
            if name not in profile.shapes:
                what = f"optimization profile is missing the shapes of this input (profile {index})"
                raise InvalidModelError(f"{name}: {what}")
        _check_names(network, index, profile)
        for name in read:
            if name not in profile.values:
                what = f"optimization profile is missing values for shape input (profile {index})"
                raise InvalidModelError(f"{name}: {what}")


def _check_names(network: INetworkDefinition, index: int, profile: IOptimizationProfile) -> None:
    """Raise `InvalidModelError` where dimensions of one name can have no length in common (tensorrt-features.md#12.19).
    """
    found: dict[str, tuple[int, int, str]] = {}
    for one in network.graph.inputs:
        ranges = profile.shapes.get(one.name)
        for axis, name in one.dimension_names.items():
            if axis >= len(one.shape) or axis in one.formulas or (ranges is None and one.shape[axis] < 0):
                continue
            own = one.shape[axis]
            low, high = (own, own) if ranges is None else (ranges.smallest[axis], ranges.largest[axis])
            least, most, other = found.get(name, (low, high, one.name))
            if low > most or high < least:
                raise InvalidModelError(
                    f"optimization profile {index}: the dimensions named {name!r} are equal, but {other} has {least} "
                    f"to {most}, and {one.name} has {low} to {high}"
                )
            found[name] = (max(least, low), min(most, high), one.name)


def _shape_inputs(network: INetworkDefinition) -> list[str]:
    """The inputs that are read as shapes (tensorrt-features.md#12.5)."""
    return [one.name for one in network.graph.inputs if network.graph.is_shape_tensor(one)]


def _types_as_shape(network: INetworkDefinition, tensor: ITensor) -> tuple[DataType, ...]:
    """The types of an input that is read as a shape: of one that only assertions read BOOL as well."""
    readers = [record.type for record in network.graph.records if any(one is tensor for one in record.inputs)]
    is_condition = all(type_ is LayerType.ASSERTION for type_ in readers)
    return (DataType.INT32, DataType.INT64, *((DataType.BOOL,) if is_condition else ()))


def _allowed(tensors: Sequence[ITensor], direct: bool) -> dict[str, AllowedFormats]:
    """The formats of the tensors for which the user chose some (tensorrt-features.md#5.1, 5.7)."""
    return {
        one.name: AllowedFormats([format.name for format in TensorFormat if one.allowed_formats >> format & 1], direct)
        for one in tensors
        if one.allowed_formats != ALL_FORMATS
    }


def _pinned(network: INetworkDefinition, profiles: Sequence[IOptimizationProfile]) -> dict[str, list[int | str]]:
    """The shapes of inputs where dimensions that no profile leaves a choice have become numbers."""
    if not profiles:
        return {}
    from mlirt.dialects.tensor_types import dims
    from mlirt.frontend.network.emission import input_type

    own: dict[str, list[int | str]] = {}
    for one in network.graph.inputs:
        lengths = dims(input_type(one))
        own[one.name] = [length if isinstance(length, int) else str(length) for length in lengths]
    return pinned_shapes(_widest(profiles), own)


def _bounds(network: INetworkDefinition, profiles: Sequence[IOptimizationProfile]) -> dict[str, tuple[int, int]]:
    """The least and the greatest value of each symbol that is a dimension of an input."""
    from mlirt.dialects.symbolic import sym, symbols
    from mlirt.dialects.tensor_types import dims
    from mlirt.frontend.network.emission import input_type

    found: dict[str, tuple[int, int]] = {}
    covered = _widest(profiles)
    for one in network.graph.inputs:
        ranges = covered.get(one.name)
        if ranges is not None:
            for length, *ends in zip(dims(input_type(one)), ranges.smallest, ranges.largest, strict=True):
                found.update({name: (ends[0], ends[1]) for name in symbols(length) if length == sym(name)})
    return found


def _widest(profiles: Sequence[IOptimizationProfile]) -> dict[str, Profile]:
    """For each input one profile that covers all."""
    return widest([profile.shapes for profile in profiles])


def _largest_outputs(network: INetworkDefinition) -> dict[str, list[object]]:
    """For outputs whose lengths only data tell, the largest that they may have (tensorrt-features.md#12.14)."""
    found = {one.name: largest_shape(one) for one in network.graph.outputs if -1 in one.shape}
    return {name: [to_json(length) for length in shape] for name, shape in found.items() if shape is not None}


def _with_settings(plan: Plan, config: IBuilderConfig, network: INetworkDefinition) -> bytes:
    """The plan with what only engines by TensorRT's names ask for: which inputs are dynamic, which tensors shapes."""
    read, delivered = _shape_inputs(network), [one.name for one in network.graph.shape_outputs]
    dynamic = {one.name: list(one.shape) for one in network.graph.inputs if -1 in one.shape}
    manifest = dict(plan.manifest_json)
    verbosity = config.profiling_verbosity.name
    info = cast("Mapping[str, object]", manifest.get("info", {}))
    manifest["info"] = {**info, "profiling_verbosity": verbosity}
    if machine := machine_of(plan.manifest.target.kind):
        manifest["info"]["machine"] = machine
    if network.graph.max_batch_size is not None:
        manifest["info"][IMPLICIT_BATCH] = network.graph.max_batch_size
    if read:
        values = {name: [list(profile.values[name]) for profile in config.optimization_profiles] for name in read}
        manifest["info"]["shape_inputs"] = values
    if delivered:
        manifest["info"]["shape_outputs"] = delivered
    if plan.manifest.sizes and (largest := _largest_outputs(network)):  # some lengths are known in a run alone
        manifest["info"]["largest_outputs"] = largest
    if dynamic:
        manifest["info"]["dynamic_inputs"] = dynamic
    sections = without_network(plan) if verbosity == "NONE" else plan.sections
    return plan_bytes(manifest, sections, plan.weights)
