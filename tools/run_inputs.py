"""What rt-opt --run gives a function: arrays from files, random ones or zeros, by `--input`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import BadZipFile

from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.func import FuncOp

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_EXPECTED = "expected FILE.npz, NAME=FILE.npy, NAME=FILE.npz, NAME=random:SEED or NAME=zeros"


@dataclass(frozen=True)
class InputSpec:
    """One --input: a name, empty for all that a file has, and where the array comes from."""

    name: str
    source: str

    @classmethod
    def parse(cls, text: str) -> InputSpec:
        name, equals, source = text.partition("=")
        if not equals:
            name, source = "", text
        spec = cls(name.strip(), source.strip())
        if not spec._is_right():
            raise InvalidInputError(f"--input={text}: {_EXPECTED}")
        return spec

    def _is_right(self) -> bool:
        word, _, seed = self.source.partition(":")
        if self.name and word in ("random", "zeros"):
            return (word == "random" and (not seed or seed.isdigit())) or self.source == "zeros"
        return self.source.endswith(".npz") or (bool(self.name) and self.source.endswith(".npy"))


def arrays_for(function: FuncOp, specs: Sequence[InputSpec], shapes: Mapping[str, Sequence[int]]) -> dict[str, Array]:
    """The array of each argument by name; raises `InvalidInputError` for one that nobody gave, or that there is not.

    `shapes` are those of arrays that are made here; else each symbol is 1.
    """
    from mlirt.dialects.interpreter import counts_runs, input_names

    names = input_names(function)
    given = [name for name, counts in zip(names, counts_runs(function), strict=True) if not counts]
    types = dict(zip(names, function.function_type.inputs.data, strict=True))
    found: dict[str, Array] = {}
    held: list[str] = []
    for name in (*shapes, *(spec.name for spec in specs if spec.name)):
        if name not in given:
            raise InvalidInputError(f"the function has no input {name!r}; it has {', '.join(given) or 'none'}")
    for spec in specs:
        if not spec.name:
            loaded = _loaded(spec.source)
            held.append(f"{spec.source} has {', '.join(loaded) or 'no arrays'}")
            found |= {name: array for name, array in loaded.items() if name in given}
        elif spec.source.endswith((".npy", ".npz")):
            found[spec.name] = _one_of(_loaded(spec.source), spec)
        else:
            found[spec.name] = _made(types[spec.name], spec, shapes.get(spec.name))
    missing = [name for name in given if name not in found]
    if missing and held:
        raise InvalidInputError(f"input {missing[0]!r} is not given: {'; '.join(held)}; inputs are {', '.join(given)}")
    if missing:
        raise InvalidInputError(f"input {missing[0]!r} is not given: --input={missing[0]}=random:0, or {_EXPECTED}")
    return found


def _loaded(path: str) -> dict[str, Array]:
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        return {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error).split("\n")[0]
        raise InvalidInputError(f"--input: cannot read {Path(path)}: {reason}") from error


def _one_of(arrays: Mapping[str, Array], spec: InputSpec) -> Array:
    if spec.name not in arrays and len(arrays) != 1:
        found = ", ".join(arrays) or "none"
        raise InvalidInputError(f"--input: {spec.source} has no array {spec.name!r}; it has {found}")
    return arrays[spec.name] if spec.name in arrays else next(iter(arrays.values()))


def _made(type_: Any, spec: InputSpec, shape: Sequence[int] | None) -> Array:
    import numpy as np

    from mlirt.dialects.symbolic import evaluate, symbols
    from mlirt.dialects.tensor_types import dims, element_name, element_of, numpy_dtype
    from mlirt.runtime.random_inputs import random_input

    lengths = dims(type_)
    sizes = tuple(shape) if shape else tuple(evaluate(dim, dict.fromkeys(symbols(dim), 1)) for dim in lengths)
    if spec.source == "zeros":
        return np.zeros(sizes, numpy_dtype(element_of(type_)))
    return random_input(element_name(element_of(type_)), sizes, int(spec.source.partition(":")[2] or 0))
