"""`mlirt.BuildConfig`: all that can be said of a build beside the model, as one value that does not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.builder.config import checks
from mlirt.builder.config.machines import machine_names, machines_of
from mlirt.builder.config.setting import setting, setting_of
from mlirt.builder.config.values import same
from mlirt.dialects.fast_math import DEFAULT
from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    import os

    import numpy as np

    from mlirt.builder.calibration.ranges_for_build import CalibrationLike, Range
    from mlirt.builder.profiles import Profiles
    from mlirt.builder.tactics.algorithm_selector import AlgorithmSelector
    from mlirt.builder.tactics.timing_cache import TimingCache
    from mlirt.frontend.onnx.graph_inputs import Shapes
    from mlirt.passes.pipeline_edits import Pipeline
    from mlirt.passes.remarks import Remarks

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

TARGETS = ("auto", "cpu", "cuda", "reference")
PRECISIONS = ("fp32", "tf32", "fp16", "int8", "int8+fp16")

Progress: TypeAlias = "Callable[[str, int, int], None]"


@dataclass(frozen=True, eq=False, repr=False)
class BuildConfig:
    """How a network is built and its engine run: `mlirt.compile(model, config=BuildConfig(target="cpu"))`.

    Each setting is checked when the value is made; `InvalidInputError` names the one that does not fit. Equal settings
    are equal configurations. `replace` gives a changed one, `to_json`, `from_json`, `save` and `load` keep one in a
    file. docs/build-config.md lists all settings with their units and defaults.
    """

    target: str = field(default="auto", metadata=setting(checks.one_of(*TARGETS), "resolved"))
    """"cuda", "cpu", "reference" (NumPy), or "auto", which is cuda where there is a GPU, else cpu."""
    precision: str = field(default="fp32", metadata=setting(checks.one_of(*PRECISIONS)))
    """What numbers are computed in: "fp32"; "tf32", which lets the matrix units of a GPU read float32 with 10 bits of
    mantissa; "fp16", which permits half precision; "int8", which computes products in int8, or "int8+fp16". Where no
    half precision is to be had, as on a CPU, it is float32 all the same, but for products of few rows on 64-bit Arm
    with FMLAL. A network that is in half precision itself is computed in float32 unless that is permitted; its inputs
    and outputs keep their types.
    """
    profiles: Profiles = field(default=(), metadata=setting(checks.profiles))
    """For inputs with dynamic dimensions, (min, opt, max) shapes by name, or several such mappings. The plan keeps
    them: the shapes of a run are within one of them, or it is refused with `InvalidInputError`. Dimensions without a
    choice become constants; choices that concern speed alone are made for the first one's opt.
    """
    input_shapes: Shapes = field(default_factory=dict[str, Any], metadata=setting(checks.mapping()))
    """Other dimensions for inputs: numbers, or names and expressions for dynamic ones. For a sequence the shape of each
    item, whose input then is called `name[0]`, `name[1]`, ..; None for an optional without a value.
    """
    constants: Mapping[str, Array] = field(default_factory=dict[str, Any], metadata=setting(checks.mapping()))
    """Values for inputs that then are built in."""
    input_formats: Sequence[str] = field(default=(), metadata=setting(checks.texts(checks.io_type)))
    """The element type and the formats that each input may have, or all of them, such as "fp16:chw" or
    "int8:chw4+chw32" (trtexec's names; bytes stand for numbers by the tensor's range).
    """
    output_formats: Sequence[str] = field(default=(), metadata=setting(checks.texts(checks.io_type)))
    """The same for outputs."""
    direct_io: bool = field(default=False, metadata=setting(checks.flag))
    """Refuse a network in which a layer needs an input or output in another format."""
    outputs: Sequence[str] = field(default=(), metadata=setting(checks.texts()))
    """Inner tensors of the network, by its names for them, that become outputs behind its own."""
    debug: Sequence[str] = field(default=(), metadata=setting(checks.texts()))
    """Inner tensors that a second engine computes beside this one, which stays as it is (`engine.debug(feeds)`,
    `engine.set_debug_listener`).
    """
    state: Mapping[str, str] = field(default_factory=dict[str, Any], metadata=setting(checks.mapping()))
    """Inputs and the outputs that they are in the next run: `{"h0": "h1"}`. Both stay in the engine, for each context
    and sequence of runs apart: `engine.run(feeds, sequence="a")`, `engine.state`, `engine.reset_state()`.
    """
    initial_state: Mapping[str, Array] = field(default_factory=dict[str, Any], metadata=setting(checks.mapping()))
    """By input what the first run of a sequence begins with; zeros where it is not said."""
    calibration: CalibrationLike | None = field(default=None, metadata=setting(checks.path_or_object, "prevents"))
    """For "int8" what `mlirt.calibrate` gives, a calibration cache (a path or its bytes), or a calibrator with
    TensorRT's interface. A network that quantises itself needs none. For "int8+fp16" on a GPU a batch of its samples
    shows whether half precision holds the results of all layers (`AccuracyWarning`, see `check_range`).
    """
    dynamic_ranges: Mapping[str, Range] = field(default_factory=dict[str, Any], metadata=setting(checks.mapping()))
    """For "int8" the range (min, max) of tensors by name, in place of the calibration's."""
    layer_precisions: Mapping[str, str] = field(
        default_factory=dict[str, Any], metadata=setting(checks.mapping(checks.layer_precision))
    )
    """What layers, by name, compute in: "fp32", "fp16" or "int8", as far as `precision` permits it. A name that no
    layer has is warned of; `*` stands for all layers that are not named.
    """
    obey_layer_precisions: bool = field(default=False, metadata=setting(checks.flag))
    """Refuse a network in which a layer cannot have what it is asked for; else that is a warning."""
    timing_cache: TimingCache | str | os.PathLike[str] | None = field(
        default=None, metadata=setting(checks.path_or_object, "prevents")
    )
    """Measured times of tactics, or a file of them: read, and written with the new ones. For "cuda", and for "cpu" with
    `cpu_timing`. A folder or a URL is shared by build machines (docs/build-farms.md).
    """
    heuristic: bool = field(default=False, metadata=setting(checks.flag))
    """Do not measure tactics on the GPU, believe the estimates of their times."""
    cpu_timing: bool = field(default=False, metadata=setting(checks.flag, "prevents"))
    """Measure tactics on this machine's processors, too: register tiles of products and convolutions, Winograd's
    algorithm. Builds take several times longer; without it the estimates are believed there.
    """
    algorithm_selector: AlgorithmSelector | None = field(
        default=None, metadata=setting(checks.anything, "prevents", is_stored=False)
    )
    """Asked which tactics each layer may have, and told which it got."""
    reject_empty_algorithms: bool = field(default=False, metadata=setting(checks.flag))
    """Refuse a selector that allows a layer nothing; else that allows it everything."""
    avg_timing_iterations: int = field(default=10, metadata=setting(checks.whole(1), unit="runs"))
    """How many runs of a tactic are measured at once."""
    min_timing_iterations: int = field(default=7, metadata=setting(checks.whole(1), unit="measurements"))
    """How many times over a tactic is measured; the median counts, on a CPU the least."""
    tactic_sources: Sequence[str] = field(default=(), metadata=setting(checks.texts(checks.tactic_source)))
    """Libraries whose kernels are measured beside mlirt's own: "CUBLAS_LT" for products, "CUDNN" for convolutions. A
    plan in which one was the fastest needs it where it runs. For "cuda".
    """
    workspace: int | None = field(default=None, metadata=setting(checks.optional(checks.whole(0)), unit="bytes"))
    """The most memory beside its tensors that a layer may take; None is no limit."""
    device: str | None = field(default=None, metadata=setting(checks.optional(checks.device)))
    """What kernels are chosen for: a name such as "h100-pcie" or "cpu-avx2", with other figures such as
    "h200+processors=148", or a .toml file (docs/add-a-device.md). None is what MLIRT_DEVICE says, else the GPU that is
    here, or an H200.
    """
    cpu: str | None = field(default=None, metadata=setting(checks.optional(checks.processors)))
    """The processor that code for a CPU is made for: a level such as "x86-64-v3", a name such as "neoverse-v1"
    (docs/machines.md), or "host". For one that is named nothing is asked of the machine that builds. None is "host".
    With several, "x86-64-v3,x86-64-v4,neoverse-v1", a plan has code for each, and the best is chosen when it is loaded.
    """
    gpu: str | None = field(default=None, metadata=setting(checks.optional(checks.architectures)))
    """The architecture of the GPU that code is made for, "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90a",
    "sm_100a" or "sm_120", or several; also beside `cpu`. "sm_80+ptx" keeps its PTX, which newer GPUs run
    (docs/machines.md). None is that of the GPU that is here; code is for "sm_80" and "sm_90a" where that is one of
    them, or there is none.
    """
    system: str | None = field(default=None, metadata=setting(checks.optional(checks.systems)))
    """The operating system that code for a CPU is made for, "linux", "darwin" (macOS), "windows" (docs/machines.md), or
    "host"; with several, "linux,windows", a plan has code for each processor under each. None is "host", and "linux"
    where a processor is named.
    """
    refittable: bool = field(default=False, metadata=setting(checks.flag))
    """Keep the network in the plan, so that `mlirt.refit` can give it other weights."""
    fast_math: str | Sequence[str] = field(default=DEFAULT, metadata=setting(checks.fast_math))
    """Which rewritings that change results are permitted, as "reassociate,finite" or a list: "reassociate" (sums and
    products in another order), "accurate" (formulas with a smaller error), "reciprocal" (x / c as x times 1 / c),
    "finite" (no number is infinite or not-a-number), "functions" (log(exp(x)) is x). "none" is none of them, "default"
    the first two, "all" all (docs/fast-math.md).
    """
    pipeline: Pipeline | None = field(default=None, metadata=setting(checks.optional(checks.pipeline), "prevents"))
    """The compiler's pipeline with changes: `mlirt.Pipeline.default().after("fuse-pointwise", "my-pass{x=1}")`, or a
    list of edits such as "without=cse". It is kept in the plan (`engine.pipeline`).
    """
    plugins: Sequence[str | os.PathLike[str]] = field(default=(), metadata=setting(checks.paths, "prevents"))
    """Python files with passes, ops, tactics or ONNX handlers of your own, which count for this build
    (docs/research.md).
    """
    weights: str | os.PathLike[str] | None = field(default=None, metadata=setting(checks.optional(checks.path)))
    """For IR the safetensors file of its weights; else the one beside it is read."""
    from_phase: str | None = field(default=None, metadata=setting(checks.optional(checks.phase)))
    """For IR the first phase that it has to go through; else its dialects tell."""
    progress: Progress | None = field(default=None, metadata=setting(checks.anything, "apart", is_stored=False))
    """Called with a text, the steps done and the steps in all."""
    dump_phases: str | os.PathLike[str] | None = field(
        default=None, metadata=setting(checks.optional(checks.path), "prevents")
    )
    """A folder for the IR after each phase, one text file a phase."""
    remarks: Remarks | None = field(default=None, metadata=setting(checks.anything, "prevents", is_stored=False))
    """Collects what the passes say of the places where they acted or declined: `mlirt.Remarks()`."""
    spin_ms: float | None = field(
        default=None, metadata=setting(checks.optional(checks.amount), "apart", unit="milliseconds")
    )
    """On a CPU, for how long after a run idle workers wait for the next one before they sleep; 0 is not at all, None
    what the environment variable MLIRT_SPIN_MS says, else up to 50, as it follows from when runs come and who else
    wants the processors.
    """
    shape_cache_mb: float | None = field(
        default=None, metadata=setting(checks.optional(checks.amount), "apart", unit="MiB")
    )
    """How much memory each context may keep of what runs have worked out for their shapes, so that it is ready when
    these come again; 0 keeps the last one alone, None what MLIRT_SHAPE_CACHE_MB says, else 64.
    """
    threads: int | None = field(
        default=None, metadata=setting(checks.optional(checks.whole(1)), "apart", unit="threads")
    )
    """The threads of a CPU that runs are computed with; None is all. As in `mlirt.load`; no part of the plan."""
    streams: int | None = field(default=None, metadata=setting(checks.optional(checks.whole(1)), "apart", unit="runs"))
    """How many runs may go on at once, for each of which there is its share of the threads. As in `mlirt.load`."""

    def __post_init__(self) -> None:
        for one in settings():
            object.__setattr__(self, one.name, setting_of(one).check(one.name, getattr(self, one.name)))
        self._check_together()

    def _check_together(self) -> None:
        """What one setting asks of another."""
        if "int8" not in self.precision and (self.calibration is not None or self.dynamic_ranges):
            raise InvalidInputError(
                f"calibration and ranges are for precision int8, but the precision is {self.precision}"
            )
        if self.debug and self.state:
            raise InvalidInputError("debug tensors are for networks without state: give the state as inputs")
        several = len(machine_names(self)) > 1
        if several and (self.debug or self.refittable):
            raise InvalidInputError("an engine for several machines can have no debug tensors and cannot be refittable")
        if self.refittable and (self.cpu or "host") != "host":
            raise InvalidInputError("an engine for a processor that is named cannot be refittable")
        if self.gpu and self.target == "cpu" and not several:
            raise InvalidInputError(f"gpu {self.gpu} is for target cuda, not cpu")
        if several and self.target == "reference":
            raise InvalidInputError("target reference has no code, so that it is for no machine")
        if self.target == "reference":
            if self.pipeline is not None and self.pipeline.edits:
                raise InvalidInputError(
                    "target reference runs the network without passes, so that no pipeline can be changed"
                )
            if self.state:
                raise InvalidInputError("target reference keeps no state: give it as inputs, or take target cpu")

    @staticmethod
    def of(config: BuildConfig | None, given: Mapping[str, Any]) -> BuildConfig:
        """A configuration, the default one without any, with these settings by name in place of its own."""
        return (config or BuildConfig()).replace(**given)

    def replace(self, **changes: Any) -> BuildConfig:
        """A configuration that is this one but for these settings; raises `InvalidInputError` for an unknown one."""
        known = [one.name for one in settings()]
        for name in changes:
            if name not in known:
                raise InvalidInputError(f"there is no setting {name!r} of a build{checks.near(name, known)}")
        return replace(self, **changes) if changes else self

    def chosen_target(self) -> str:
        """cuda or cpu for "auto", which the log tells; else the target, which is that of the device if one is named.

        Of several machines it is the first one's.
        """
        from mlirt.builder.device_choice import asking
        from mlirt.builder.host import log_target

        machines = list(machines_of(self).values())
        if len(machines) > 1:
            return machines[0].chosen_target()
        with asking(self.device, self.cpu, self.system, self.gpu):
            return log_target(self.target)

    def changes(self) -> dict[str, Any]:
        """The settings that are not their defaults, by name."""
        values = {one.name: (getattr(self, one.name), default_of(one)) for one in settings()}
        return {name: value for name, (value, default) in values.items() if not same(value, default)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BuildConfig):
            return NotImplemented
        return all(same(getattr(self, one.name), getattr(other, one.name)) for one in settings())

    def __repr__(self) -> str:
        return f"BuildConfig({', '.join(f'{name}={value!r}' for name, value in self.changes().items())})"

    def to_json(self) -> str:
        """The settings that are not their defaults as JSON; `InvalidInputError` for an object that has no text."""
        from mlirt.builder.config.config_file import to_json

        return to_json(self)

    @staticmethod
    def from_json(text: str) -> BuildConfig:
        """What `to_json` has written; raises `InvalidInputError` where it is none."""
        from mlirt.builder.config.config_file import from_json

        return from_json(text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON to a file."""
        from mlirt.atomic_file import write_file

        write_file(path, [self.to_json().encode()])

    @staticmethod
    def load(path: str | os.PathLike[str]) -> BuildConfig:
        """Read a file of JSON, or of TOML if its name ends in `.toml`; `InvalidInputError` names file and setting."""
        from mlirt.builder.config.config_file import load

        return load(path)


@cache
def settings() -> tuple[Field[Any], ...]:
    """The settings in their order."""
    return fields(BuildConfig)


def network_settings(config: BuildConfig | None, target: str, input_shapes: Shapes | None) -> BuildConfig:
    """A configuration for whoever runs a network without building it, with the target and shapes that a call says."""
    given: dict[str, Any] = {"target": target} if target != "auto" else {}
    return BuildConfig.of(config, given if input_shapes is None else {**given, "input_shapes": input_shapes})


def default_of(one: Field[Any]) -> Any:
    """What a setting is where nobody says."""
    return one.default_factory() if callable(one.default_factory) else one.default
