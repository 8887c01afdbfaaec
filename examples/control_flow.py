"""The conditional and the loop of TensorRT's guide, made layer by layer and read from ONNX: both give the same.

    python examples/control_flow.py [--target cpu|cuda|auto]

`sum_or_product` adds two tensors or multiplies them, as a condition says. `sum_even` adds those items of a list that
are even: a conditional in a loop.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import parser

import mlirt
import mlirt as trt

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[Any]]

SUM_OR_PRODUCT = """
<ir_version: 8, opset_import: ["" : 17]>
sum_or_product (bool condition, float[n] x, float[n] y) => (float[n] result) {
   result = If (condition) <
      then_branch: graph = add () => (float[n] sum) { sum = Add (x, y) },
      else_branch: graph = multiply () => (float[n] product) { product = Mul (x, y) }>
}
"""

SUM_EVEN = """
<ir_version: 8, opset_import: ["" : 17]>
sum_even (int32[n] items) => (int32 total) {
   zero = Constant <value = int32 {0}> ()
   two = Constant <value = int32 {2}> ()
   shape = Shape (items)
   axis = Constant <value = int64 {0}> ()
   count = Gather (shape, axis)
   total = Loop (count, , zero) <body: graph = body (int64 i, bool go_in, int32 before) => (bool go, int32 after) {
      go = Identity (go_in)
      item = Gather (items, i)
      rest = Mod (item, two)
      even = Equal (rest, zero)
      after = If (even) <
         then_branch: graph = take () => (int32 more) { more = Add (before, item) },
         else_branch: graph = leave () => (int32 same) { same = Identity (before) }>
   }>
}
"""


def add_sum_or_product(network: trt.INetworkDefinition) -> None:
    """Layers of the conditional: what depends on its inputs is computed only in the branch that is taken."""
    condition = network.add_input("condition", trt.bool, ())
    x, y = (network.add_input(name, trt.float32, (-1,)) for name in ("x", "y"))
    for one in (x, y):
        one.set_dimension_name(0, "n")
    choice = network.add_if_conditional()
    choice.set_condition(condition)
    a, b = (choice.add_input(one).get_output(0) for one in (x, y))
    total = network.add_elementwise(a, b, trt.ElementWiseOperation.SUM).get_output(0)
    product = network.add_elementwise(a, b, trt.ElementWiseOperation.PROD).get_output(0)
    result = choice.add_output(total, product).get_output(0)
    result.name = "result"
    network.mark_output(result)


def add_sum_even(network: trt.INetworkDefinition) -> None:
    """Layers of the loop, and of the conditional in it."""
    items = network.add_input("items", trt.int32, (-1,))
    zero, two = (network.add_constant((), np.array(value, np.int32)).get_output(0) for value in (0, 2))
    loop = network.add_loop()
    lengths = network.add_shape(items).get_output(0)
    first = network.add_constant((), np.array(0, np.int32)).get_output(0)
    loop.add_trip_limit(network.add_gather(lengths, first, 0).get_output(0), trt.TripLimit.COUNT)
    item = loop.add_iterator(items).get_output(0)
    total = loop.add_recurrence(zero)

    def combine(a: trt.ITensor, b: trt.ITensor, op: trt.ElementWiseOperation) -> trt.ITensor:
        return network.add_elementwise(a, b, op).get_output(0)

    half = combine(item, two, trt.ElementWiseOperation.FLOOR_DIV)
    whole = combine(half, two, trt.ElementWiseOperation.PROD)
    even = combine(item, whole, trt.ElementWiseOperation.EQUAL)
    choice = network.add_if_conditional()
    choice.set_condition(even)
    before = choice.add_input(total.get_output(0)).get_output(0)
    more = combine(before, item, trt.ElementWiseOperation.SUM)
    total.set_input(1, choice.add_output(more, before).get_output(0))
    result = loop.add_loop_output(total.get_output(0), trt.LoopOutput.LAST_VALUE).get_output(0)
    result.name = "total"
    network.mark_output(result)


NETWORKS = {"sum_or_product": (add_sum_or_product, SUM_OR_PRODUCT), "sum_even": (add_sum_even, SUM_EVEN)}


def build(name: str, longest: int, target: str) -> mlirt.Engine:
    """The engine of a network that is made layer by layer, for lists of up to `longest` items."""
    logger = trt.Logger()
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    NETWORKS[name][0](network)
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.target = target
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        if -1 in tensor.shape:
            profile.set_shape(tensor.name, (0,), (longest,), (longest,))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    return mlirt.load(plan)


def run_both(name: str, feeds: Mapping[str, Array], target: str = "auto") -> tuple[Array, Array]:
    """The result of the network made layer by layer, and that of the ONNX model."""
    layers = build(name, 16, target)
    read = mlirt.compile(parser.parse_model(NETWORKS[name][1]), target=target)
    return next(iter(layers.run(feeds).values())), next(iter(read.run(feeds).values()))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--target", default="auto", help="cpu, cuda or auto (default)")
    target = arguments.parse_args().target
    x, y = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
    for condition in (True, False):
        found = run_both("sum_or_product", {"condition": np.array(condition), "x": x, "y": y}, target)
        print(f"sum_or_product({condition}): {found[0]} by layers, {found[1]} from ONNX")
    items = np.array([2, 3, 4, 7, 10], np.int32)
    found = run_both("sum_even", {"items": items}, target)
    print(f"sum_even({items}): {found[0]} by layers, {found[1]} from ONNX")


if __name__ == "__main__":
    main()
