"""CPU time of the passes on a large network: `python bench/passes.py [--ops 2000] [--target cpu]`.

The network is a chain of residual blocks (convolution, batch normalization, activation, addition) with small weights,
so that the time is that of the compiler and not of the arithmetic on constants.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from mlirt.dialects.context import RtContext
from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.locations import named
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_type, tensor
from mlirt.dialects.trt.activation import ActivationKind, ActivationKindAttr, ActivationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseKindAttr, ElementwiseOp
from mlirt.dialects.trt.scale import ScaleOp
from mlirt.passes.pipeline import PipelineOptions, run_phases

CHANNELS = 8


def network(ops: int, ctx: RtContext) -> ModuleOp:
    """A chain of residual blocks with about `ops` ops, constants among them."""
    rng = np.random.default_rng(0)
    block = Block(arg_types=[tensor(element_type("float32"), [1, CHANNELS, 16, 16])])
    value: SSAValue = block.args[0]
    count = 0

    def add(op: TensorOp, name: str) -> SSAValue:
        nonlocal count
        op.location = named(f"{name}{count}")
        block.add_op(op)
        count += 1
        return op.results[0]

    def constant(*shape: int) -> SSAValue:
        array = rng.standard_normal(shape).astype(np.float32)
        return add(ConstantOp.from_array(array, ctx.weights, "weights"), "constant")

    while count < ops:
        kernel, shift, scale = constant(CHANNELS, CHANNELS, 3, 3), constant(CHANNELS), constant(CHANNELS)
        pads = {"pre_padding": integer_list([1, 1]), "post_padding": integer_list([1, 1])}
        result = add(ConvolutionOp.build_inferred([value, kernel, None], pads), "conv")
        result = add(ScaleOp.build_inferred([result, shift, scale, None]), "bn")
        result = add(
            ElementwiseOp.build_inferred([result, value], {"kind": ElementwiseKindAttr(ElementwiseKind.SUM)}), "add"
        )
        value = add(ActivationOp.build_inferred([result], {"kind": ActivationKindAttr(ActivationKind.RELU)}), "relu")
    block.add_op(ReturnOp(value))
    return ModuleOp([FuncOp("main", ([block.args[0].type], [value.type]), Region(block))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ops", type=int, default=2000)
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--to", default="fusion", help="the last phase (default: %(default)s)")
    arguments = parser.parse_args()
    ctx = RtContext()
    module = network(arguments.ops, ctx)
    options = PipelineOptions(arguments.target)
    start = time.process_time()
    run_phases(module, ctx, last=arguments.to, options=options)
    total = time.process_time() - start
    by_pass: Counter[str] = Counter()
    for entry in options.times:
        by_pass[entry.pass_name] += round(1e6 * entry.cpu)
    for name, microseconds in by_pass.most_common():
        print(f"{microseconds / 1000:9.1f} ms  {name}")
    print(
        f"{1000 * total:9.1f} ms  in all, checks of the IR included, for {arguments.ops} ops up to phase {arguments.to}"
    )


if __name__ == "__main__":
    main()
