"""The engine of target `reference`: the network run op by op in NumPy, as the ops define themselves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import counts_runs, entry_function, input_names, interpret, output_names
from mlirt.dialects.locations import name_of
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.dialects.tensor_types import dims, element_name, element_of
from mlirt.dialects.trt.boundary import BoundaryOp
from mlirt.dialects.trt.run_number import run_number
from mlirt.errors import InvalidInputError, UnsupportedError
from mlirt.passes.pipeline import run_passes
from mlirt.runtime.engine_interface import TensorDescription
from mlirt.runtime.layer_times import Profile
from mlirt.runtime.notebook_html import engine_html
from mlirt.runtime.profile_ranges import ShapeRange, check_profiles

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class ReferenceEngine:
    """Slow and exact; what every other target is compared with. It runs a module of any level that has a meaning."""

    def __init__(
        self,
        module: ModuleOp,
        ctx: RtContext,
        name: str = "network",
        profiles: Sequence[Mapping[str, ShapeRange]] = (),
    ) -> None:
        """`profiles` are the shapes that runs may have, all where there are none."""
        self.module = module = _with_regions(module, ctx)
        self.name = name
        self.target = "reference"
        self._ctx = ctx
        self._function = entry_function(module)
        self._is_lowered = any(op.dialect_name() == "plan" for op in self._function.walk())
        self._runs = 0
        self._profiles = profiles

    @property
    def inputs(self) -> tuple[TensorDescription, ...]:
        """The inputs in the order of the network."""
        function = self._function
        named = zip(input_names(function), function.function_type.inputs.data, counts_runs(function), strict=True)
        given = [(name, type_) for name, type_, is_counter in named if not is_counter]
        return _described([name for name, _ in given], [type_ for _, type_ in given])

    @property
    def outputs(self) -> tuple[TensorDescription, ...]:
        """The outputs in the order of the network."""
        return _described(output_names(self._function), self._function.function_type.outputs.data)

    @property
    def layers(self) -> tuple[Mapping[str, object], ...]:
        """One record per op: its layers of the trained network, its op, how many inputs and outputs it has."""
        return tuple(
            {"name": name_of(op), "family": op.name, "inputs": len(op.operands), "outputs": len(op.results)}
            for op in self._function.body.block.ops
            if op.results
        )

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name; raises `InvalidInputError` for feeds that do not fit the inputs."""
        check_profiles(self._profiles, {name: tuple(getattr(array, "shape", ())) for name, array in feeds.items()})
        with run_number(self._runs):
            found = (run_plan if self._is_lowered else interpret)(self.module, self._ctx, feeds)
        self._runs += 1  # a run that fails leaves its number to the next
        return {name: np.asarray(array) for name, array in found.items()}  # NumPy makes numbers of arrays of rank 0

    def profile(self, feeds: Mapping[str, Array], *, runs: int = 1) -> Profile:
        """Milliseconds of each op: the median of so many `runs`."""
        if runs < 1:
            raise InvalidInputError(f"runs={runs}: expected at least 1")
        return Profile([self._times(feeds) for _ in range(runs)])

    def _times(self, feeds: Mapping[str, Array]) -> list[tuple[str, float]]:
        times: list[tuple[str, float]] = []
        last = perf_counter()

        def observe(op: Operation, results: Sequence[Array]) -> None:
            nonlocal last
            now = perf_counter()
            times.append((name_of(op), (now - last) * 1e3))
            last = now

        interpret(self.module, self._ctx, feeds, observe=observe)
        return times

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return engine_html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Always raises `UnsupportedError`: there is no plan to save."""
        raise UnsupportedError(
            "the reference target has no plan to save; build for 'cpu' or 'cuda', or export the IR with rt-translate"
        )


def _with_regions(module: ModuleOp, ctx: RtContext) -> ModuleOp:
    """The network with regions in the place of the borders of loops and conditionals, which mean nothing alone."""
    if not any(isinstance(op, BoundaryOp) for op in module.walk()):
        return module
    copy = module.clone()
    run_passes(copy, ctx, "name-dimensions,infer-nesting,convert-loops-to-scf,convert-conditionals-to-scf")
    return copy


def _described(names: Sequence[str], types: Sequence[Attribute]) -> tuple[TensorDescription, ...]:
    return tuple(
        TensorDescription(
            name,
            element_name(element_of(type_)),
            tuple(dim if isinstance(dim, int) else str(dim) for dim in dims(type_)),
        )
        for name, type_ in zip(names, types, strict=True)
    )
