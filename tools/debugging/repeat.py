"""rt-debug repeat: whether a network computes the same bits in each run and each build, and which launch does not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mlirt.builder.build import BuildOptions, build_plan
from mlirt.dialects.locations import name_of
from mlirt.runtime.engine import Engine
from mlirt.tools.debugging.case import Case
from mlirt.tools.debugging.compare import with_all_results
from mlirt.tools.debugging.crashes import guarded
from mlirt.tools.debugging.differences import difference
from mlirt.tools.debugging.finding import ALONE, Finding

if TYPE_CHECKING:
    import numpy as np

    from mlirt.runtime.plan_file import Plan

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

Say = Callable[[str], None]
Outputs: TypeAlias = "Mapping[str, Array]"
BUILDS = 2


@dataclass(frozen=True)
class _Runs:
    """The outputs of runs on the same inputs, and the digest of each."""

    outputs: list[Outputs]

    def distinct(self, name: str) -> int:
        """How many different results an output had."""
        return len({_digest(one[name]) for one in self.outputs})

    def apart(self, name: str) -> float:
        """How far the results of an output are apart, as a share of the largest number of the first."""
        return max(difference(one[name], self.outputs[0][name]) for one in self.outputs)


def repeat(case: Case, runs: int, say: Say) -> Finding | None:
    """The kernel that differs from build to build, else the launch whose result differs from run to run; None if none.

    Between two runs there is one on other inputs, so that memory holds other numbers; every third run has an engine of
    its own, by turns of either build, and on a CPU every other of these has memory in which what nobody has written is
    NaN.
    """
    plans = [_plan(case, case.module, case.first) for _ in range(BUILDS)]
    other = _other_kernel(*plans)
    if other is not None:
        return other
    say(f"{BUILDS} builds launch the same kernels")
    found = _Runs(_repeated(case, plans, runs))
    differing = [name for name in found.outputs[0] if found.distinct(name) > 1]
    if not differing:
        say(f"{runs} runs give the same bits")
        return None
    for name in differing:
        say(f"output {name}: {found.distinct(name)} different results in {runs} runs, {found.apart(name):.3g} apart")
    return _first_launch(case, runs, max(map(found.apart, differing)))


def _first_launch(case: Case, runs: int, error: float) -> Finding:
    module = case.after(None, "fusion")
    launches = with_all_results(module)
    found = _Runs(_repeated(case, [_plan(case, module, "layout") for _ in range(BUILDS)], runs))
    for name, op in launches.items():
        if found.distinct(name) > 1:
            return _finding(op, found.apart(name))
    return Finding("memory", ALONE.format("differs"), error=error)


def _finding(op: Operation, error: float) -> Finding:
    return Finding("kernel", op.name, layers=(name_of(op),), error=error)


def _other_kernel(one: Plan, other: Plan) -> Finding | None:
    """The first launch that has another kernel in another build."""
    names = [
        [(launch.layer, plan.manifest.kernels[launch.kernel].name) for launch in plan.manifest.launches]
        for plan in (one, other)
    ]
    for first, second in zip(*names, strict=False):
        if first != second:
            return Finding("tactic", f"{first[1]} in one build, {second[1]} in another", layers=(first[0],))
    if len(names[0]) != len(names[1]):
        return Finding("tactic", f"{len(names[0])} launches in one build, {len(names[1])} in another")
    return None


def _plan(case: Case, module: ModuleOp, first: str | None) -> Plan:
    options = BuildOptions(case.precision, first=first, pipeline=case.pipeline, temporary=True)
    return build_plan(module.clone(), case.ctx, case.target, options)


def _repeated(case: Case, plans: Sequence[Plan], runs: int) -> list[Outputs]:
    """The outputs of so many runs on the inputs of the case, with others between them."""
    between = {name: _other_numbers(array) for name, array in case.feeds.items()}
    shared = Engine(plans[0])
    outputs: list[Outputs] = []
    for number in range(runs):
        with guarded(on=number % 6 == 5 and case.target == "cpu"):
            engine = Engine(plans[(number // 3 + 1) % BUILDS]) if number % 3 == 2 else shared
            outputs.append(_copied(engine.run(case.feeds)))
        shared.run(between)
    return outputs


def _other_numbers(array: Array) -> Array:
    """Other numbers of the same type and shape, where any will do: integers may be places in a table."""
    return array * array.dtype.type(-0.75) if array.dtype.kind == "f" else array


def _copied(outputs: Outputs) -> Outputs:
    return {name: array.copy() for name, array in outputs.items()}


def _digest(array: Array) -> str:
    return hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
