"""The manifest of a host program is what the runtime reads: it parses it and binds it to shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fused_network import Add, Network, access, context, dim, network_of, region, t
from lowered_network import lower
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Attribute, SSAValue

from mlirt.builder.plan_writer.manifest import manifest_of, weight_keys
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.quantization_notes import set_notes
from mlirt.dialects.tensor_types import element_type, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.errors import CompileError, PlanError, UnsupportedError
from mlirt.passes.pipeline import run_passes
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.manifest_parser import parse_manifest
from mlirt.runtime.shape_binding import bind_shapes


def _planned(inputs: list[Attribute], build: Any) -> ModuleOp:
    made = context()
    module = lower(network_of(inputs, build), made)
    run_passes(module, made, "plan-memory,verify-memory-plan")
    return module


def _parsed(record: dict[str, Any]) -> Manifest:
    """The manifest with what a builder adds, as the runtime reads it."""
    kernels = [{**kernel, "object": "object"} for kernel in record["kernels"]]
    target = {"kind": "cpu", "triple": "", "arch": ""}
    weights = {buffer["weight"]: buffer["bytes"] for buffer in record["buffers"] if buffer["kind"] == "weight"}
    return parse_manifest({**record, "kernels": kernels, "target": target, "main": "main"}, ["object", "main"], weights)


def _network(network: Network) -> list[SSAValue]:
    """A constant, a concatenation in place, a softmax, a view; one value is returned twice, and an input as it is."""
    (x,) = network.inputs
    constant = network.add(ConstantOp.from_array(np.arange(8, dtype=np.float32).reshape(1, 8), WeightStore(), "c"))

    def product(add: Add, values: list[SSAValue]) -> list[SSAValue]:
        return [add(arith.MulfOp(values[0], values[1]))]

    accesses = [access("d0", "d1"), access("0", "d1")]
    scaled = network.add(PointwiseOp([x, constant], accesses, [x.type], region(["float32"] * 2, product)), "scale")
    likely = network.add(SoftmaxOp(x, 1), "likely")
    joined = ConcatOp([scaled, likely], 1, t("float32", "n", 16))
    joined.in_place = [True, True]
    network.add(joined, "joined")
    flat = network.add(ViewOp(joined.output, t("float32", "16*n")), "flat")
    total = network.add(PointwiseOp([flat], [access("d0")], [flat.type], identity_region(f32)), "total")
    return [x, flat, total, total]


def test_the_runtime_understands_it() -> None:
    record: dict[str, Any] = manifest_of(_planned([t("float32", "n", 8)], _network), "net")
    manifest = _parsed(record)
    assert [symbol.name for symbol in manifest.symbols] == ["n"]
    assert [launch.layer for launch in manifest.launches] == ["scale", "likely", "total"]
    assert [layer["family"] for layer in record["layers"]] == ["pointwise", "softmax", "pointwise"]
    assert record["layers"][0]["inputs"][0] == {"name": "input0", "dtype": "float32", "shape": ["n", 8]}
    bound = bind_shapes(manifest, [(5, 8)])
    assert bound.output_shapes == ((5, 8), (80,), (80,), (80,))
    assert bound.arena_bytes >= 5 * 16 * 4


def test_only_what_is_one_output_is_memory_of_the_caller() -> None:
    record: dict[str, Any] = manifest_of(_planned([t("float32", "n", 8)], _network))
    kinds = [record["buffers"][output["buffer"]]["kind"] for output in record["outputs"]]
    # An input; a buffer under another shape; a value that is returned twice.
    assert kinds == ["input", "output", "arena", "arena"]


def test_weights_are_named() -> None:
    module = _planned([t("float32", "n", 8)], _network)
    assert weight_keys(module) == ["constant"]


def test_halos_become_classes() -> None:
    blocked = tensor(f32, [dim("n"), 1, 3, 2, 4], channels=4, halo=(1, 1))
    indices = access("d0", "d1", "d2", "d3", "d4")

    def build(network: Network) -> list[SSAValue]:
        padded = network.add(PointwiseOp(network.inputs, [indices], [blocked], identity_region(f32)))
        return [network.add(PointwiseOp([padded], [indices], [t("float32", "n", 1, 3, 2, 4)], identity_region(f32)))]

    manifest = _parsed(manifest_of(_planned([t("float32", "n", 1, 3, 2, 4)], build)))
    (halo,) = [buffer for buffer in manifest.buffers if buffer.halo is not None]
    bound = bind_shapes(manifest, [(2, 1, 3, 2, 4)])
    assert bound.sizes[manifest.buffers.index(halo)] == 2 * 5 * 4 * 4 * 4
    assert bound.halos == ((0, 640, 0),)


def test_what_fills_a_halo_reaches_the_runtime() -> None:
    byte, indices = element_type("uint8"), access("d0", "d1", "d2", "d3", "d4")
    blocked = tensor(byte, [2, 1, 3, 2, 4], channels=4, halo=(1, 1), fill=128)

    def build(network: Network) -> list[SSAValue]:
        padded = network.add(PointwiseOp(network.inputs, [indices], [blocked], identity_region(byte)))
        return [network.add(PointwiseOp([padded], [indices], [t("uint8", 2, 1, 3, 2, 4)], identity_region(byte)))]

    record: dict[str, Any] = manifest_of(_planned([t("uint8", 2, 1, 3, 2, 4)], build))
    assert bind_shapes(_parsed(record), [(2, 1, 3, 2, 4)]).halos == ((0, 160, 128),)
    (halo,) = [buffer for buffer in record["buffers"] if buffer.get("halo")]
    record["buffers"].append(halo | {"fill": 3})
    with pytest.raises(PlanError, match="fill: 3, others of its halo class have 128"):
        _parsed(record)


def test_a_size_without_an_input_dimension_is_refused() -> None:
    def build(network: Network) -> list[SSAValue]:
        return [network.add(SoftmaxOp(network.inputs[0], 0))]

    module = _planned([t("float32", "2*n")], build)
    with pytest.raises(UnsupportedError, match="the size 'n' is not the length of an input dimension"):
        manifest_of(module)


def test_memory_must_be_planned() -> None:
    module = lower(network_of([t("float32", "n", 8)], _network), context())
    with pytest.raises(CompileError, match="run plan-memory first"):
        manifest_of(module)


def test_layers_say_what_became_of_their_quantisation() -> None:
    module = _planned([t("float32", "n", 8)], _network)
    set_notes(module, {"scale": "multiplies bytes", "scale + other": "is part of another launch", "total": "stays f32"})
    notes = {layer["name"]: layer.get("quantization") for layer in _layers(module)}
    assert notes == {"scale": ["scale: multiplies bytes"], "likely": None, "total": ["total: stays f32"]}


def _layers(module: ModuleOp) -> list[dict[str, Any]]:
    record: dict[str, Any] = manifest_of(module, "net")
    return record["layers"]
