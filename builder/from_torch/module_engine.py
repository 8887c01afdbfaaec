"""An engine that is called as the module which it was made from: with tensors, positional or by name, nested or not."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch.utils import _pytree as pytree

from mlirt.builder.from_torch.tensor_run import SHARED_ELEMENTS, run_tensors
from mlirt.errors import InvalidInputError
from mlirt.frontend.torch.elements import array_of, tensor_of
from mlirt.frontend.torch.importer import CallingConvention
from mlirt.runtime.engine import Engine
from mlirt.runtime.engine_interface import EngineLike, TensorDescription
from mlirt.runtime.layer_times import Profile
from mlirt.runtime.notebook_html import engine_html


class ModuleEngine:
    """`engine(x, mask=m)` gives what `module(x, mask=m)` gives; `engine.run({"x": array})` works as for every engine.

    Tensors share their memory with the arrays that they become, inputs and results. Calls compute no gradients.
    """

    def __init__(self, engine: EngineLike, convention: CallingConvention) -> None:
        self.engine = engine
        self.convention = convention
        self._keeps_state = isinstance(engine, Engine) and bool(engine.states)
        self._plain = _count_of_plain(convention)
        self._single = convention.outputs[0][0] if convention.out_spec.is_leaf() else None
        self._short = self._short_run()

    def _short_run(self) -> Callable[..., dict[str, np.ndarray] | None] | None:
        """Runs on tensors in place, of which nothing more is asked than of arrays; None where results are converted."""
        engine = self.engine
        if self._plain < 1 or self._keeps_state or not isinstance(engine, Engine) or engine.target != "cpu":
            return None
        return engine.run_short if all(one.dtype in SHARED_ELEMENTS for one in engine.outputs) else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on tensors; raises `InvalidInputError` for arguments that are not built like the example's."""
        short = self._short
        if short is not None and not kwargs and len(args) == self._plain:
            for one in args:
                if type(one) is not torch.Tensor or one.requires_grad:
                    break
            else:
                found = short(dict(zip(self.convention.inputs, args, strict=True)))
                if found is not None and self._single is not None:
                    return torch.from_numpy(found[self._single])
                if found is not None:
                    return self._results({name: torch.from_numpy(array) for name, array in found.items()})
        if self._keeps_state:
            raise InvalidInputError("an engine with state is run by names: engine.run({'x': array})")
        leaves = self._plain_leaves(args, kwargs) or self._leaves(args, kwargs)
        if torch.is_grad_enabled() and any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves):
            raise InvalidInputError("an engine computes no gradients: call it under torch.no_grad()")
        if len(leaves) != self._plain:
            self._check_built_in(leaves)
        feeds = {name: _tensor(name, leaf) for name, leaf in zip(self.convention.inputs, leaves, strict=True) if name}
        return self._results(run_tensors(self.engine, feeds))

    def _results(self, found: Mapping[str, Any]) -> Any:
        """What the module returns."""
        if self._single is not None:
            return found[self._single]
        results = [constant if name is None else found[name] for name, constant in self.convention.outputs]
        return pytree.tree_unflatten(results, self.convention.out_spec)

    def _plain_leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """The arguments where they are tensors by position, as in the example; else None."""
        if kwargs or len(args) != self._plain:
            return None
        return args if all([isinstance(one, torch.Tensor) for one in args]) else None

    def _leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        wanted = self.convention.in_spec
        names = list(wanted.child(1).context) if wanted.child(1).num_children else []
        ordered = {name: kwargs[name] for name in names if name in kwargs} | kwargs
        leaves, found = pytree.tree_flatten((args, ordered))
        if found != wanted:
            raise InvalidInputError(f"the module was exported for arguments {wanted}, but is called with {found}")
        return leaves

    def _check_built_in(self, leaves: Sequence[Any]) -> None:
        """Numbers and what else is no tensor are part of the engine: another one would be another module."""
        built_in = zip(self.convention.inputs, self.convention.built_in, leaves, strict=True)
        for place, (name, wanted, leaf) in enumerate(built_in):
            if name is None and not (
                type(leaf) is type(wanted) and (leaf == wanted or (leaf != leaf and wanted != wanted))
            ):
                found = type(leaf).__name__ if isinstance(leaf, torch.Tensor) else repr(leaf)
                raise InvalidInputError(
                    f"argument {place} is {found}, but the module was exported for {wanted!r}, which is built in; "
                    "compile it for the other value, or make it a tensor"
                )

    @property
    def name(self) -> str:
        """The class of the module."""
        return self.engine.name

    @property
    def inputs(self) -> tuple[TensorDescription, ...]:
        """The inputs in the order of the network."""
        return self.engine.inputs

    @property
    def outputs(self) -> tuple[TensorDescription, ...]:
        """The outputs in the order of the network."""
        return self.engine.outputs

    @property
    def layers(self) -> tuple[Mapping[str, object], ...]:
        """What the builder made of the network, one record per layer."""
        return self.engine.layers

    def run(self, feeds: Mapping[str, np.ndarray], **options: Any) -> dict[str, np.ndarray]:
        """The outputs by name for inputs by name, as arrays; `options` are those of `Engine.run`."""
        return cast("Engine", self.engine).run(feeds, **options)

    def profile(self, feeds: Mapping[str, np.ndarray], *, runs: int = 1) -> Profile:
        """(layer, milliseconds) of every launch, each run alone: the median of so many `runs`."""
        return self.engine.profile(feeds, runs=runs)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return engine_html(self.engine)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan file; `mlirt.load` opens it where there is no PyTorch, too."""
        self.engine.save(path)

    def refit(
        self,
        module: Any,
        *,
        lora: Mapping[str, Any] | None = None,
        lora_scale: float | Mapping[str, float] = 1.0,
        lora_transposed: bool = False,
    ) -> ModuleEngine:
        """An engine with the weights that a module, or a state dictionary, has now; this one keeps its own.

        `lora`: factors of low-rank updates, under PEFT's names, that are added to the weights, `lora_scale` times; see
        `mlirt.lora_merged`. The engine was built with `refittable=True`. Raises `InvalidInputError` for weights of
        other shapes, and for an adapter of layers that the module does not have.
        """
        from mlirt.builder.low_rank_updates import lora_merged
        from mlirt.builder.refit import refit, refittable_weights

        engine = cast("Engine", self.engine)
        stored = dict(module if isinstance(module, Mapping) else _weights(module))
        if lora is not None:
            arrays = {name: array_of(tensor) for name, tensor in stored.items()}
            factors = {name: array_of(tensor) for name, tensor in lora.items()}
            merged = lora_merged(arrays, factors, lora_scale, transposed=lora_transposed)
            stored |= {name: tensor_of(array) for name, array in merged.items()}
        known = refittable_weights(engine)
        lost = [name for name in self.convention.weights if name in stored and name not in known]
        if lost:
            raise InvalidInputError(f"the engine cannot change the weights {', '.join(lost)}; build it anew")
        weights = {name: array_of(tensor) for name, tensor in stored.items() if name in known}
        return ModuleEngine(refit(engine, weights), self.convention)


def _count_of_plain(convention: CallingConvention) -> int:
    """How many arguments there are, where all are tensors by position and inputs; else -1."""
    positional, keywords = convention.in_spec.children()
    is_flat = all(one.is_leaf() for one in positional.children()) and keywords.num_leaves == 0
    return positional.num_children if is_flat and all(convention.inputs) else -1


def _weights(module: Any) -> dict[str, Any]:
    return {**dict(module.named_buffers()), **dict(module.named_parameters(remove_duplicate=False))}


def _tensor(name: str, leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        raise InvalidInputError(f"input {name!r}: expected a tensor, got {type(leaf).__name__}")
    return leaf
