"""Removes layers that change nothing and gives equal things one form."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.passes.cleanup import laws
from mlirt.passes.cleanup.laws.law import Law, Site
from mlirt.passes.cleanup.rewriting import blocks, replace
from mlirt.passes.options import option

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class CanonicalizePass(ModulePass):
    """Apply the laws in `passes/cleanup/laws/` until none holds any more, at most `max-sweeps` times over the network.

    Before:

        %z = trt.constant {value = dense<0.0> : tensor<1xf32>} : tensor<1xf32>
        %a = trt.elementwise sum %x, %z : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
        %b = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32>
        %y = trt.activation relu %b : (tensor<4xf32>) -> tensor<4xf32>

    After:

        %y = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "canonicalize"

    max_sweeps: int = option(8, at_least=1)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        table = laws_by_op()
        for _ in range(self.max_sweeps):
            changed = False
            for block in blocks(op):
                for layer in list(block.ops):
                    changed |= _apply(table.get(type(layer), ()), Site(ctx, layer))
            if not changed:
                return


def _apply(candidates: Sequence[Law], site: Site) -> bool:
    for law in candidates:
        value: SSAValue | None = law(site)
        if value is not None and value.type == site.op.results[0].type:
            _LOG.debug("%s: %s", law.__name__, site.op.name)
            replace(site.op, value)
            return True
    return False


@cache
def laws_by_op() -> dict[type[Operation], tuple[Law, ...]]:
    """The laws for each op class, from the tables `LAWS` in `laws/`."""
    table: dict[type[Operation], tuple[Law, ...]] = {}
    for entry in pkgutil.iter_modules(laws.__path__):
        found: dict[type[Operation], tuple[Law, ...]] = getattr(
            import_module(f"{laws.__name__}.{entry.name}"), "LAWS", {}
        )
        for kind, more in found.items():
            table[kind] = (*table.get(kind, ()), *more)
    return table
