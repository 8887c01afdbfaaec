"""One way to lower one op, ready to be measured: a plan that runs the op several times."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from mlirt.builder.plan_writer.manifest import manifest_of, weight_keys
from mlirt.builder.tactics.network_of_one_op import Shape, input_shapes, network_of, op_of
from mlirt.builder.tactics.repeated_launches import copy_key, repeated
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.dialects.context import RtContext
from mlirt.dialects.kernel.core import FuncOp as KernelOp
from mlirt.dialects.kernel.features import features_of_kernel
from mlirt.dialects.kernel.worker import PARTS
from mlirt.dialects.target import Target
from mlirt.dialects.typical_sizes import typical_values
from mlirt.errors import MlirtError
from mlirt.kernels.lib.tactics.registry import TACTIC
from mlirt.passes.phases import TargetMachine, find_phase, specs_of
from mlirt.passes.pipeline_text import parse_pipeline
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.expressions import evaluate, parse
from mlirt.runtime.plan_file import Plan, make_plan

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from mlirt.builder.tactics.cpu_compiler import CpuSource
    from mlirt.builder.tactics.plan_code import PlanCode
    from mlirt.dialects.tensor_op import Array

_SAMPLE = 1 << 26  # bytes of a constant that are kept; longer ones are measured with repetitions of these
_NOISE = 1 << 16  # elements
_BYTES = 16  # how far bytes are from zero, about
_MAX_WEIGHT_BYTES = 1 << 28  # on the device, of one trial


@dataclass(frozen=True)
class Sample:
    """The start of an array, and the shape of the whole."""

    values: Array
    shape: Shape

    @staticmethod
    def of(array: Array, kept: dict[bytes, Sample]) -> Sample:
        """The sample of an array; equal ones are kept once."""
        values = array.reshape(-1)[: max(1, _SAMPLE // array.dtype.itemsize)]
        about = f"{array.dtype} {array.shape} ".encode()
        key = about + hashlib.blake2b(values.tobytes(), digest_size=16).digest()
        if key not in kept:
            kept[key] = Sample(values.copy(), array.shape)
        return kept[key]

    @property
    def is_whole(self) -> bool:
        """Whether no number was left out."""
        return self.values.size == math.prod(self.shape)

    def array(self) -> Array:
        """An array of that shape with values as in the sample."""
        return np.resize(self.values, self.shape)


@dataclass(frozen=True)
class Trial:
    """The kernels of one candidate, the launches of one run, and the shapes that it is measured at."""

    candidate: str
    manifest: Mapping[str, Any]
    sources: Mapping[str, Any]
    """A `KernelSource` or a `CpuSource` for each, by the kind of target."""
    weights: Mapping[str, Sample]
    shapes: tuple[Shape, ...]
    workspace: int
    """Bytes between the launches of a run that are neither an input, nor a result, nor a constant."""

    @property
    def computes_the_layer(self) -> bool:
        """Whether it has all numbers of the layer's constants, so that its results can be held against others'."""
        return all(sample.is_whole for sample in self.weights.values())

    def plan(self, calls: int, code: PlanCode, *, cold: bool = False) -> Plan:
        """So many runs, one after the other; with `cold` weights each has its own, so that no cache holds them."""
        weights = {key: sample.array() for key, sample in self.weights.items()}
        size = sum(array.nbytes for array in weights.values())
        copies = min(calls, max(1, _MAX_WEIGHT_BYTES // max(size, 1))) if cold else 1
        buffers, launches = repeated(self.manifest, calls, copies)
        kernels = [{**kernel, **code.records.get(kernel["name"], {})} for kernel in self.manifest["kernels"]]
        changed = {"launches": launches, "buffers": buffers, "kernels": kernels, "layers": [], **code.header}
        copied = {copy_key(key, copy): array for key, array in weights.items() for copy in range(copies)}
        return make_plan({**self.manifest, **changed}, code.sections, copied)


def trials(
    op: Operation, names: Sequence[str], ctx: RtContext, target: Target, known: Mapping[str, int]
) -> list[Trial]:
    """A trial for each of the candidates that lowers the op alone; the others are left out."""
    subject = Subject(op, ctx, target, known)
    made = [subject.trial(name) for name in names]
    return [trial for trial in made if trial is not None]


class Subject:
    """An op as a network of its own, of which trials are made one by one; it lives on when its network changes."""

    def __init__(self, op: Operation, ctx: RtContext, target: Target, known: Mapping[str, int]) -> None:
        self._network, self._ctx, self._target = network_of(op, known), RtContext(), target
        self._ctx.weights.share(ctx.weights, set(_constant_keys(self._network)))
        self._kept: dict[bytes, Sample] = {}

    def trial(self, name: str) -> Trial | None:
        """The op lowered by a candidate; None where it declines."""
        return _trial(self._network.clone(), name, self._ctx, self._target, self._kept)


def _constant_keys(network: ModuleOp) -> list[str]:
    from mlirt.dialects.trt.constant import ConstantOp
    from mlirt.dialects.weights import WeightsAttr

    values = [op.value for op in network.walk() if isinstance(op, ConstantOp)]
    return [value.key.data for value in values if isinstance(value, WeightsAttr)]


def _trial(network: ModuleOp, name: str, ctx: RtContext, target: Target, kept: dict[bytes, Sample]) -> Trial | None:
    op_of(network).attributes[TACTIC] = StringAttr(name)
    shapes, (function,) = tuple(input_shapes(network)), [op for op in network.ops if isinstance(op, FuncOp)]
    known = {**typical_values(function.body.block), PARTS: target.threads}
    phases = [find_phase(name) for name in ("lowering", "memory")]
    machine = TargetMachine(arch=target.arch, features=sorted(target.features), device=target.device)
    specs = [spec for phase in phases for spec in specs_of(phase, target.kind, machine=machine)]
    try:
        for pass_ in parse_pipeline(",".join(specs)):
            pass_.apply(ctx, network)
        manifest, keys = cast("dict[str, Any]", manifest_of(network)), set(weight_keys(network))
    except MlirtError:  # for example a size that only a whole run tells
        return None
    if "program" in manifest:  # the launches of a loop cannot be repeated one by one
        return None
    samples = {key: Sample.of(array, kept) for key, array in ctx.weights.items(keys)}
    arena = [parse(buffer["bytes"], known) for buffer in manifest["buffers"] if buffer["kind"] == "arena"]
    workspace = sum(evaluate(size, known) for size in arena)
    sources = sources_of(network) if target.kind == "cuda" else _cpu_sources(network)
    return Trial(name, manifest, sources, samples, shapes, workspace)


def _cpu_sources(network: ModuleOp) -> dict[str, CpuSource]:
    from mlirt.builder.tactics.cpu_compiler import CpuSource
    from mlirt.codegen.numba_cpu import kernel_source

    kernels = {op.sym_name.data: op for op in network.ops if isinstance(op, KernelOp)}
    return {name: CpuSource(name, kernel_source(op), features_of_kernel(op)) for name, op in kernels.items()}


def feeds(plan: Plan, shapes: Sequence[Shape], kept: dict[tuple[str, Shape], Array]) -> list[Array]:
    """Inputs to measure with: floats and bytes are noise, other integers zero, which is a legal index.

    Numbers that are all alike would be multiplied faster: they take less power. Arrays are taken from `kept`, by type
    and shape, or made and put there.
    """
    noise = np.random.default_rng(0).standard_normal(_NOISE)
    made: list[Array] = []
    for tensor, shape in zip(plan.manifest.inputs, shapes, strict=True):
        dtype = numpy_dtype(tensor.dtype)
        if (tensor.dtype, shape) in kept:
            made.append(kept[tensor.dtype, shape])
            continue
        if dtype.kind in "fV":
            values: Array = noise.astype(dtype)
        elif dtype.name in ("int8", "uint8"):
            values = (noise * _BYTES).astype(np.int8).view(dtype)
        else:
            values = np.zeros(1, dtype)
        kept[tensor.dtype, shape] = np.resize(values, shape)
        made.append(kept[tensor.dtype, shape])
    return made
