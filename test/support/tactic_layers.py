"""A small layer for each tactic that lowers something for a GPU, found by asking which tactics some layers have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx
from attentions import SMALL
from contractions import PROBLEMS, Problem, channels_last_text, convolution_text, planes_text, product_text
from family_models import FAMILIES
from float8_models import float8_chain
from long_rows import long_rows_text
from lowered_network import parse_module
from onnx import helper
from onnx_models import model_of, numbers, one_node
from packed_products import PackedCase, PackedNetwork
from pooling_layer import pooling_text
from quantized_contractions import quantized_convolution_text, quantized_product_text
from xdsl.dialects.builtin import ModuleOp, ShapedType
from xdsl.ir import Operation

from mlirt.builder.tactics.sites import find_sites
from mlirt.builder.tactics.trial import Trial, trials
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.target import Target
from mlirt.dialects.typical_sizes import typical_values
from mlirt.frontend.onnx.importer import import_model
from mlirt.kernels.lib.tactics import registry as tactics
from mlirt.passes.pipeline import PipelineOptions, run_phases

PLAIN, TENSOR_FLOAT = (Target("cuda", arch="sm_90a", features=frozenset(one)) for one in ((), ("tf32",)))
WITHOUT_LAYER = {
    "convolution/cuda_cudnn": "a kernel of NVIDIA's library, which is open only where it is asked for",
    "convolution/cuda_tcgen05": "for sm_100a; the layers here are lowered for the device of the tests, an H200",
    "interleave/generic": "remainders of deconvolutions are interleaved on CPUs alone",
    "matmul/cuda_cublas_lt": "a kernel of NVIDIA's library, which is open only where it is asked for",
    "matmul/cuda_tcgen05": "for sm_100a; the layers here are lowered for the device of the tests, an H200",
    "plugin/generic": "calls what a user has written",
    "view/generic": "launches nothing: it says where a tensor lies",
}
"""Tactics that are registered for GPUs and have no layer here, and why."""
# A cluster that shares a sum is offered for sums much longer than a sanitizer has time for.
_ALSO = {"fused.matmul": ("cuda_wgmma:64x64s3c4",)}


@dataclass(frozen=True)
class Kind:
    """A tactic, its choice without numbers (`#x#s#` of `64x96s9`), and the type that its layer reads."""

    tactic: str
    choice: str
    element: str


def registered() -> set[str]:
    """All tactics for GPUs, as `op/tactic`."""
    found = [pair for family in tactics.families() for pair in tactics.tactics_of(family).items()]
    return {f"{_kind_of(op)}/{name}" for name, one in found if "cuda" in one.TARGETS for op in one.OPS}


@cache
def one_of_each(*, every_choice: bool = True) -> dict[Kind, Trial]:
    """For each kind the first layer of the table that it computes, ready to be compiled; without `every_choice` for
    each tactic.
    """
    made: dict[Kind, Trial] = {}
    for module, context, target in _layers():
        known = typical_values(entry_function(module).body.block)
        for site in find_sites(module, context, target, fewest=1):
            op = site.ops[0]
            for name in (*[one.name for one in site.candidates], *_ALSO.get(op.name, ())):
                kind = _kind(op, name, target) if every_choice else Kind(_tactic(op, name), "", "")
                if kind not in made and kind.tactic not in WITHOUT_LAYER:
                    made |= {kind: one for one in trials(op, [name], context, target, known)}
    return made


def _tactic(op: Operation, name: str) -> str:
    return f"{_kind_of(type(op))}/{name.partition(':')[0]}"


def _kind_of(op: type[Operation]) -> str:
    return op.name.partition(".")[2]


def _kind(op: Operation, name: str, target: Target) -> Kind:
    element = _element(op) if op.name in ("fused.matmul", "fused.convolution") and name != "generic" else ""
    element += " as tf32" if element == "f32" and "tf32" in target.features else ""
    return Kind(_tactic(op, name), re.sub(r"\d+", "#", name.partition(":")[2]), element)


def _element(op: Operation) -> str:
    type_ = op.operands[0].type
    assert isinstance(type_, ShapedType)
    return str(getattr(type_, "element_type", ""))


Layer = tuple[ModuleOp, RtContext, Target]


def _moved(shape: tuple[int, ...], order: tuple[int, ...]) -> onnx.ModelProto:
    """Numbers in another order, and a function of them."""
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=order), helper.make_node("Erf", ["t"], ["y"])]
    return model_of(nodes, {"x": ("float32", shape)}, ["y"])


def _doubled() -> onnx.ModelProto:
    """Images of twice the size, each pixel repeated."""
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest", **how)
    return model_of([node], {"x": ("float32", (1, 8, 32, 32))}, ["y"], {"s": np.array([1, 1, 2, 2], np.float32)}, 18)


def _repeated() -> onnx.ModelProto:
    """A sum whose operands have lengths that a run may make 1."""
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    return model_of(nodes, {name: ("float32", ("n", length)) for name, length in (("a", "k"), ("b", "m"))}, ["y"])


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "pooling in planes": lambda: one_node("MaxPool", [numbers(8, 64, 64, 64)], kernel_shape=[3, 3], pads=[1] * 4)[0],
    "padding of rows": lambda: one_node("Pad", [numbers(64, 64, 61), np.array([0, 0, 2, 0, 0, 1])], 18, (1,))[0],
    "columns": lambda: one_node("CumSum", [numbers(300, 64), np.array(0)], constants=(1,))[0],
    "sums of columns": lambda: one_node("ReduceSum", [numbers(300, 64), np.array([0])], constants=(1,))[0],
    "twice the size": _doubled,
    "transposed": lambda: _moved((300, 200), (1, 0)),
    "interleaved": lambda: _moved((64, 4096, 4), (0, 2, 1)),
    "repeated": _repeated,
}
"""Layers beside those of `FAMILIES`, for tactics that large or particular ones have."""


def _layers() -> Iterator[Layer]:
    """Small ones first."""
    for family in FAMILIES:
        yield _model(FAMILIES[family]()[0], "fp16" if family == "attention" else "fp32")
    for make in MODELS.values():
        yield _model(make(), "fp32")
    for case in ("tails", "one query"):
        yield *parse_module(SMALL[case].text()), PLAIN
    for sizes in ((70, 40, 90), (300, 200, 136), (512, 256, 512), (1568, 768, 384)):
        yield from _products(*sizes)
    for problem in _CONVOLUTIONS:
        yield from _convolutions(problem)
    yield *parse_module(planes_text(Problem((2, 64, 12, 12), (72, 64, 3, 3)), "f16")), PLAIN
    yield *parse_module(long_rows_text((15,), 70_000, "f32")), PLAIN
    pooled = pooling_text("max", (2, 64, 26, 28), "f16", last=True, planes=True, size=2, stride=2, pads=(0, 0))
    yield *parse_module(pooled), PLAIN
    large = pooling_text("max", (2, 64, 26, 28), "f16", last=True, planes=True, size=4, stride=4, pads=(0, 0))
    yield *parse_module(large), PLAIN
    packed = PackedNetwork(PackedCase(rows=2, columns=65, depth=128, block=32))
    yield packed.module, packed.ctx, PLAIN


def _model(model: onnx.ModelProto, precision: str) -> Layer:
    context = RtContext()
    module = import_model(model, context)
    run_phases(module, context, last="layout", options=PipelineOptions("cuda", precision))
    return module, context, PLAIN


def _products(rows: int, depth: int, columns: int) -> Iterator[Layer]:
    for element in ("f16", "bf16", "f32"):
        for flip in (True, False):
            shapes = (rows, depth), (columns, depth) if flip else (depth, columns), (rows, columns)
            text = product_text(*shapes, element, (False, flip))
            yield *parse_module(text), PLAIN
            if element == "f32":
                yield *parse_module(text), TENSOR_FLOAT
    for element in ("i8", "ui8"):
        yield *parse_module(quantized_product_text((rows, depth), columns, element)), PLAIN
    if depth % 16 == 0:
        yield _model(float8_chain(rows, (depth, columns)), "fp16")


_CONVOLUTIONS = (
    Problem((2, 24, 15, 17), (24, 1, 3, 3), groups=24, pre=(1,), post=(1,)),
    Problem((2, 3, 45, 41), (40, 3, 7, 7), stride=(2,), pre=(3,), post=(3,)),
    Problem((2, 64, 15, 17), (72, 64, 3, 3), residual=True, pre=(1,), post=(1,)),
    Problem((2, 64, 15, 17), (40, 64, 1, 1)),
    Problem((2, 72, 19, 17), (40, 72, 3, 3), stride=(2,), pre=(1,)),
    Problem((1, 512, 7, 7), (512, 512, 3, 3), pre=(1,), post=(1,)),
    Problem((9, 16, 57, 55), (200, 16, 1, 1), residual=True),
    Problem((9, 16, 28, 27), (200, 16, 3, 3), residual=True, pre=(1,), post=(1,)),
    Problem((8, 64, 64, 64), (64, 1, 3, 3), groups=64, pre=(1,), post=(1,)),
    Problem((2, 16, 9, 40), (24, 16, 3, 3), residual=True, pre=(1,), post=(1,)),
    *PROBLEMS.values(),
)


def _convolutions(problem: Problem) -> Iterator[Layer]:
    for element in ("f16", "bf16", "f32"):
        for text in (convolution_text(problem, element), channels_last_text(problem, element)):
            yield *parse_module(text), PLAIN
            if element == "f32":
                yield *parse_module(text), TENSOR_FLOAT
    if not problem.transposed:
        residual = "i8" if problem.residual else ""
        yield *parse_module(quantized_convolution_text(problem, residual=residual)), PLAIN
