"""Ten generated networks of different families, and faults that are planted in them, for bench/debug.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Template

import numpy as np
import onnx
from convolutional_networks import mobilenet_v2
from graph_writer import GraphWriter, floats
from growth_activation_networks import unet
from growth_networks import chain, dynamic_images, hourglass, random, transformer
from random_networks import random_network


def recurrent(layers: int, seed: int = 0) -> onnx.ModelProto:
    """LSTMs of 16 steps, each with a product and a hyperbolic tangent behind it."""
    writer, width = GraphWriter(seed), 16
    value, axis = "x", writer.constant("axis", np.array([1], np.int64))
    for number in range(layers):
        given = [
            writer.normal(f"{name}_{number}", (1, 4 * width, width), 0.2) for name in ("input_weight", "state_weight")
        ]
        states = writer.node("LSTM", [value, *given], f"lstm_{number}", hidden_size=width)
        one = writer.node("Squeeze", [states, axis], f"squeeze_{number}")
        weight = writer.normal(f"weight_{number}", (width, width), 0.3)
        value = writer.node("Tanh", [writer.node("MatMul", [one, weight], f"product_{number}")], f"tanh_{number}")
    return writer.model("recurrent", [floats("x", 16, 2, width)], [floats(value, 16, 2, width)])


NETWORKS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "images": lambda: random_network(0, 30).model,
    "sequences": lambda: random_network(1, 30).model,
    "chain": lambda: chain(150),
    "transformer": lambda: transformer(120),
    "random": lambda: random(80),
    "hourglass": lambda: hourglass(80),
    "unet": lambda: unet(1, 32, 8, 3),
    "mobilenet": lambda: mobilenet_v2(1),
    "dynamic images": lambda: dynamic_images(30),
    "recurrent": lambda: recurrent(12),
}


SHAPES: Mapping[str, str] = {"dynamic images": "x:2x4x12x12"}
"""What inputs with open dimensions get; through images of one pixel a network passes little on."""


@dataclass(frozen=True)
class Fault:
    """A file that is wrong on purpose, the flags that bring it in, and the pass that bisect has to name."""

    kind: str
    text: str
    edits: tuple[str, ...]
    name: str

    def flags(self, file: str) -> list[str]:
        return [f"--load-pass-plugin={file}", *(f"--pipeline-edit={edit}" for edit in self.edits)]


_LAYER = Template('''\
"""Behind layer $layer stands a rewrite that is wrong: its result goes through a sigmoid, or another one than it had."""

from dataclasses import dataclass

from xdsl.passes import ModulePass

from mlirt.dialects.locations import names
from mlirt.dialects.trt.activation import ActivationOp


@dataclass(frozen=True)
class PlantedPass(ModulePass):
    name = "planted"

    def apply(self, ctx, op):
        for layer in list(op.walk()):
            if $layer in names(layer.location) and layer.name == $op and len(layer.results) == 1:
                made = ActivationOp.build_inferred([layer.results[0]], {"kind": "sigmoid"}, location=layer.location)
                layer.parent.insert_op_after(made, layer)
                layer.results[0].replace_uses_with_if(made.output, lambda use: use.operation is not made)
                return
''')
_LAUNCH = Template('''\
"""The scalar body of the launch of layer $layer is wrong: x becomes (1 - x) / 2."""

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.passes import ModulePass

from mlirt.dialects.locations import names


def spoil(op):
    last = op.regions[-1].block.last_op
    value = last.operands[0]
    half = arith.ConstantOp(FloatAttr(0.5, value.type))
    part = arith.MulfOp(value, half.result)
    more = arith.SubfOp(half.result, part.result)
    last.parent.insert_ops_before([half, part, more], last)
    last.operands[0] = more.result


''')
_LAUNCH_PASS = Template("""\
@dataclass(frozen=True)
class PlantedPass(ModulePass):
    name = "planted"

    def apply(self, ctx, op):
        for launch in list(op.walk()):
            if launch.name == $op and $layer in names(launch.location):
                spoil(launch)
                return
""")
_TACTIC = Template("""\
from mlirt.dialects.fused.$file import $class_name
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.tactics.registry import tactics_for

OPS, TARGETS, PRIORITY = ($class_name,), frozenset({"cpu"}), 1000


def lower(op, lowering):
    if str([dims(value.type) for value in (*op.operands, *op.results)]) != $shapes:
        return False
    spoil(op)
    others = [tactic for _, tactic in tactics_for(op, lowering.target) if tactic.lower is not lower]
    return any(tactic.lower(op, lowering) for tactic in others)
""")


def wrong_rewrite(layer: str, op: str) -> Fault:
    """A pass over layers that is wrong at one of them."""
    text = _LAYER.substitute(layer=repr(layer), op=repr(op))
    return Fault("rewrite", text, ("after=fuse-padding-convolution:planted",), "planted")


def wrong_fusion(layer: str, op: str) -> Fault:
    """A pass over launches that is wrong at one of them."""
    text = _LAUNCH.substitute(layer=layer) + _LAUNCH_PASS.substitute(layer=repr(layer), op=repr(op))
    return Fault("fusion", text, ("before=eliminate-dead-layers#2:planted",), "planted")


def wrong_tactic(layer: str, file: str, class_name: str, shapes: str) -> Fault:
    """A tactic that is wrong for launches with the shapes of one layer's; equal launches share what a tactic says."""
    text = _LAUNCH.substitute(layer=layer)
    text += _TACTIC.substitute(file=file, class_name=class_name, shapes=repr(shapes))
    return Fault("tactic", text, (), "")  # the phase `layout` may give the launch another op
