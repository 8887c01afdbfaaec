"""Other weights for an engine: a refittable plan keeps its network, which is compiled again with them.

So it does not matter what became of the weights: folded into others, packed, halved or quantised. Kernels come from the
cache, tactics are those of the first build, nothing is measured.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mlirt.builder.build import BuildOptions, build_plan
from mlirt.builder.host import gpu_is_here
from mlirt.builder.kept_state import copied_state
from mlirt.builder.pipeline_record import recorded_pipeline
from mlirt.builder.tactics.selection import Tuning
from mlirt.dialects.context import RtContext
from mlirt.dialects.fast_math import DEFAULT, read_rights
from mlirt.dialects.locations import name_of
from mlirt.dialects.pass_plugins import with_plugins
from mlirt.dialects.quantization_scales import scaled_layers, wrong_scale
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.tensor_names import name_of_hint
from mlirt.dialects.tensor_types import dims, element_of, is_float, numpy_dtype
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.quantize import DequantizeOp
from mlirt.errors import InvalidInputError, PlanError, reports_shortage
from mlirt.passes.quantization.tensor_ranges import add_range, ranges_in
from mlirt.runtime import safetensors_section
from mlirt.runtime.debug_tensors import without_debug
from mlirt.runtime.engine import Engine
from mlirt.runtime.kept_network import NETWORK, WEIGHTS, is_refittable
from mlirt.runtime.plan_file import Plan, make_plan

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# What a plan's `info` says of the build that is to be repeated.
_BUILD = "build"


@with_plugins
@reports_shortage("the build")
def refit(
    engine: Engine,
    weights: Mapping[str, Array],
    *,
    spin_ms: float | None = None,
    threads: int | None = None,
    streams: int | None = None,
    plugins: Sequence[str | os.PathLike[str]] = (),
) -> Engine:
    """An engine with other weights, given by their names in the ONNX model; the others stay as they are.

    `spin_ms`, `threads` and `streams` are those of `mlirt.load`; `plugins` are those that the engine was built with.
    The engine, or the plan that it was loaded from, was built with `refittable=True`. Raises `InvalidInputError` for
    one that was not, for names that it does not know (`refittable_weights` gives them), and arrays of another shape.
    """
    network = KeptNetwork(engine.plan)
    for name, array in weights.items():
        if name not in network.named:
            raise InvalidInputError(f"the engine has no weights {name!r}; it has {', '.join(network.named) or 'none'}")
        network.replace_named(name, array)
    waits = engine.target == "cuda" and not gpu_is_here()
    return Engine(network.plan(), spin_ms, threads=threads, streams=streams, waits=waits)


def refittable_weights(engine: Engine) -> dict[str, Array]:
    """The weights that `refit` can change, by name, as they are now."""
    network = KeptNetwork(engine.plan)
    return {name: network.array_of(op) for name, (op, *_) in network.named.items()}


class KeptNetwork:
    """The network of a refittable plan. `named` and `of_layers` are its floating-point constants."""

    def __init__(self, plan: Plan) -> None:
        if not is_refittable(plan):
            raise InvalidInputError("the engine was built without BuilderFlag.REFIT (refittable=True)")
        self._plan = plan
        self.ctx = RtContext()
        register_dialects(self.ctx)
        for key, array in safetensors_section.parse(memoryview(plan.sections[WEIGHTS])).items():
            self.ctx.weights.add(key, array)
        self.module, _ = parse_source(self.ctx, bytes(plan.sections[NETWORK]).decode(errors="replace"), NETWORK)
        constants = [
            op for op in self.module.walk() if isinstance(op, ConstantOp) and is_float(element_of(op.output.type))
        ]
        self.named = _by_name(constants, self.ctx)
        self.of_layers: dict[tuple[str, str], ConstantOp] = {}
        for op in constants:
            self._learn_layers(op)

    def _learn_layers(self, constant: ConstantOp) -> None:
        """A constant is what the layers that read it call it; one that is a layer itself is `constant`."""
        for use in constant.output.uses:
            role = _role(use.operation.name, use.index)
            if role is not None and name_of(use.operation) != "":
                self.of_layers.setdefault((name_of(use.operation), role), constant)
        readers = {name_of(use.operation) for use in constant.output.uses}
        if name_of(constant) not in readers:
            self.of_layers.setdefault((name_of(constant), "constant"), constant)

    def array_of(self, constant: ConstantOp) -> Array:
        return constant.array(self.ctx.weights)

    def replace_named(self, name: str, array: Array) -> None:
        """The same for all constants that are called so."""
        self.replace(self.named[name], array, name)

    def replace(self, constants: Sequence[ConstantOp], array: Array, label: str) -> None:
        """Let all of the constants have other elements, or none of them.

        Raises `InvalidInputError`, naming `label`, for another number of elements, and for scales of integers that are
        not positive (tensorrt-features.md#14.9).
        """
        made = [self._made(constant, array, label) for constant in constants]
        for constant, other in zip(constants, made, strict=True):
            constant.properties["value"] = other.properties["value"]

    def _made(self, constant: ConstantOp, array: Array, label: str) -> ConstantOp:
        """A constant of the same type with these elements."""
        import numpy as np

        shape = [int(length) for length in dims(constant.output.type) if isinstance(length, int)]
        given = np.asarray(array)
        if given.size != int(np.prod(shape, dtype=np.int64)) or given.dtype.kind not in "fV":
            raise InvalidInputError(
                f"{label}: expected floating-point weights of shape {shape}, got {given.dtype} of {list(given.shape)}"
            )
        elements = given.astype(numpy_dtype(element_of(constant.output.type))).reshape(shape)
        self._check_scales(constant, elements, label)
        return ConstantOp.from_array(elements, self.ctx.weights, label, constant.location)

    def _check_scales(self, constant: ConstantOp, elements: Array, label: str) -> None:
        import numpy as np

        for layer in scaled_layers(constant.output):
            # Channels of weights that are all 0 had the scale 0 before.
            zeros = self.array_of(constant).reshape(elements.shape) == 0
            is_zero = zeros & (elements == 0) if isinstance(layer, DequantizeOp) else np.zeros_like(zeros)
            wrong = wrong_scale(elements[~is_zero])
            if wrong is not None:
                raise InvalidInputError(
                    f"{label}: expected scales greater than 0 for layer {name_of(layer)}, got {wrong:g}; the engine "
                    "keeps those that it has"
                )

    @property
    def ranges(self) -> dict[str, float]:
        """The largest absolute value of each tensor with a range."""
        return ranges_in(self.module)

    def set_range(self, tensor: str, largest: float) -> None:
        add_range(self.module, tensor, largest)

    def plan(self) -> Plan:
        """The plan of the network as it is now; what else the first one says stays."""
        old = self._plan.manifest
        how = cast("Mapping[str, Any]", old.info.get(_BUILD, {}))
        replay, sources = how.get("tactics"), how.get("sources", [])
        if not isinstance(how.get("precision"), str) or not isinstance(sources, list):
            raise PlanError("the plan does not say how its network was built; please rebuild it")
        tuning = Tuning(sources=frozenset(map(str, cast("list[object]", sources))), replay=replay)
        pipeline = recorded_pipeline(old.info)
        options = BuildOptions(
            how["precision"],
            name=old.name,
            tuning=tuning,
            first=how.get("first"),
            refittable=True,
            pipeline=pipeline,
            fast_math=read_rights(how.get("fast_math", DEFAULT)),
        )
        made = build_plan(self.module, self.ctx, old.target.kind, options)
        kept = {key: value for key, value in self._plan.manifest_json.items() if key == "profiles"}
        info = without_debug(cast("Mapping[str, object]", self._plan.manifest_json.get("info", {})))
        info.update(cast("Mapping[str, object]", made.manifest_json.get("info", {})))
        plan = make_plan({**made.manifest_json, **kept, "info": info}, made.sections, made.weights)
        return copied_state(self._plan, plan)


def _by_name(constants: Sequence[ConstantOp], ctx: RtContext) -> dict[str, list[ConstantOp]]:
    """The constants of each name, several where they have the same elements; names of different ones are left out."""
    import numpy as np

    found: dict[str, list[ConstantOp]] = {}
    for op in constants:
        if op.output.name_hint is not None:
            found.setdefault(name_of_hint(op.output.name_hint), []).append(op)
    arrays = {name: [op.array(ctx.weights).reshape(-1) for op in ops] for name, ops in found.items()}
    return {
        name: found[name]
        for name, (first, *others) in arrays.items()
        if all(np.array_equal(first, other, equal_nan=True) for other in others)
    }


_ROLES = {
    "trt.convolution": {1: "kernel", 2: "bias"},
    "trt.deconvolution": {1: "kernel", 2: "bias"},
    "trt.fully_connected": {1: "kernel", 2: "bias"},
    "trt.scale": {1: "shift", 2: "scale"},
}


def _role(op: str, operand: int) -> str | None:
    """What an op calls one of its operands, where TensorRT has a word for it."""
    return _ROLES.get(op, {}).get(operand)
