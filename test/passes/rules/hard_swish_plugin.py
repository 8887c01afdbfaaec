"""Hard swish as exporters spell it out: x * clip(x + 3, 0, 6) / 6."""

from dataclasses import dataclass

from mlirt.dialects.trt.activation import ActivationOp
from mlirt.passes.rules import Rule, RulePass, binary, layer, near, number, op, value

x = value("x")
gate = op(ActivationOp, binary("sum", x, number(3)), kind="clip", alpha=0, beta=near(6))
swish = layer(ActivationOp, x, kind="hard_swish", alpha=1 / 6, beta=0.5)


@dataclass(frozen=True)
class FuseHardSwishPass(RulePass):
    """Make one activation of a hard swish that is spelled out."""

    name = "fuse-hard-swish"
    rules = (
        Rule(binary("div", binary("prod", x, gate), number(6)), swish, "of_product"),
        Rule(binary("prod", x, binary("div", gate, number(6))), swish, "of_gate"),
    )
