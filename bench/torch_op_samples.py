"""PyTorch's own samples of its operators through `mlirt.compile` or torch.compile.

    python bench/torch_op_samples.py --samples 4 --target cpu
    python bench/torch_op_samples.py --only 'nn.functional' --by backend --dtypes float32,int64,bool --strided

The samples are those of `torch.testing._internal.common_methods_invocations.op_db`, each in its own process.
Tensors of a sample are inputs, all else is built in. Outcomes:

right       the same structure, types and shapes, and no element is further from PyTorch's than 2e-4 of its size (2
            roundings in half precision), or 3 times as far from the result in double precision as PyTorch's own
refused     an error that says what the engine cannot have
untraced    torch.export cannot trace the operator
random      PyTorch's own results differ from call to call, are no dense tensors or cannot be had, or the results
            differ and the operator draws random numbers
differs     other numbers, shapes or types
exception, internal, crash, hang: as in the other fuzzes

The exit status is 1 where a case differs or ends otherwise than in a result or an error of one line.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import itertools
import re
import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from isolated_case import Case, Limits, parser, run_cases, said_by
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch_closeness import difference

import mlirt
from mlirt.errors import UnsupportedError

Tell = Callable[[str, str], None]
_UNWRITTEN = re.compile(r"(^|_)empty(_|$)")


class Sample(torch.nn.Module):
    """A call of an operator whose tensors are the module's inputs."""

    def __init__(self, operator: Any, sample: Any, dtype: Any) -> None:
        super().__init__()
        self._operator = operator
        leaves, self._spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
        self.inputs = tuple(_as(one, dtype) for one in leaves if isinstance(one, torch.Tensor))
        self._others = [None if isinstance(one, torch.Tensor) else (one,) for one in leaves]

    def forward(self, *tensors: Any) -> Any:
        """The operator of the tensors."""
        rest = iter(tensors)
        leaves = [next(rest) if other is None else other[0] for other in self._others]
        first, args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return self._operator(first, *args, **kwargs)


def _as(tensor: Any, dtype: Any) -> Any:
    is_cast = tensor.is_floating_point() and dtype.is_floating_point
    return tensor.detach().to(dtype) if is_cast else tensor.detach()


@dataclass(frozen=True)
class Way:
    """How samples are drawn and become engines."""

    target: str
    by_backend: bool
    dtype: Any = torch.float32
    is_strided: bool = False

    def engine(self, module: Any) -> Callable[..., Any]:
        """What is called like the module."""
        if self.by_backend:
            from mlirt.builder.from_torch.dynamo_backend import mlirt_backend

            options = {"target": self.target, "min_nodes": 1}
            return torch.compile(module, backend=mlirt_backend, options=options, fullgraph=False)
        found: Any = mlirt.compile(module, module.inputs, target=self.target)
        return found


def judge(name: str, variant: str, number: int, way: Way, tell: Tell) -> None:
    """Tell the outcome of one sample."""
    warnings.simplefilter("ignore")
    torch.manual_seed(number)
    if _UNWRITTEN.search(name):
        return tell("random", "elements that nobody has written")
    operator = next(one for one in op_db if one.name == name and one.variant_test_name == variant)
    sample = next(itertools.islice(operator.sample_inputs("cpu", way.dtype), number, None))
    sample = sample.noncontiguous() if way.is_strided else sample
    judge_module(
        Sample(operator.op, sample, way.dtype).eval(), way, lambda: Sample(operator.op, sample, torch.float64), tell
    )


def judge_module(module: Any, way: Way, exact: Callable[[], Any], tell: Tell) -> None:
    """Tell the outcome of a module with `inputs`; `exact` makes it in double precision."""
    try:
        wanted, again = _result(module), _result(module)
    except Exception as error:
        return tell("random", f"PyTorch: {error}")
    dense = all(one.layout == torch.strided for one in pytree.tree_leaves(wanted) if isinstance(one, torch.Tensor))
    if not dense or difference(again, wanted):
        return tell("random", "")
    tell("begun", "")
    try:
        engine = way.engine(module)
        with torch.no_grad():
            found = engine(*(_copy(one) for one in module.inputs))
    except UnsupportedError as error:
        return tell("untraced" if "cannot trace" in str(error) else "refused", str(error))
    except Exception as error:
        outcome, text = said_by(error)
        return tell("exception" if outcome == "exception" else outcome, text)
    text = difference(found, wanted) and difference(found, wanted, _exact(exact))
    return tell("right" if not text else "random" if _draws(module) else "differs", text)


class _Seen(TorchDispatchMode):
    """Notes whether an operator was called that draws random numbers."""

    draws = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.draws |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def _draws(module: Any) -> bool:
    with _Seen() as seen:
        _result(module)
    return seen.draws


def _result(module: Any) -> Any:
    with torch.no_grad():
        return module(*(_copy(one) for one in module.inputs))


def _copy(tensor: Any) -> Any:
    """A copy with the same strides, also where elements lie apart."""
    if tensor.layout != torch.strided or tensor.is_contiguous() or 0 in tensor.stride():
        return tensor.clone()
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(tensor)


def _exact(make: Callable[[], Any]) -> Any:
    try:
        return _result(make())
    except Exception:
        return None


def cases(only: str, samples: int, way: Way) -> Iterator[Case]:
    """One for each sample."""
    for operator in op_db:
        label = operator.name + (f".{operator.variant_test_name}" if operator.variant_test_name else "")
        if re.search(only, label) is None or not operator.supports_dtype(way.dtype, "cpu"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                drawn = operator.sample_inputs("cpu", way.dtype)
                count = sum(1 for _ in itertools.islice(drawn, 40))
            except Exception:
                continue
        for number in spread(count, samples):

            def judged(_: bytes, tell: Tell, chosen: Any = operator, k: int = number) -> None:
                judge(chosen.name, chosen.variant_test_name, k, way, tell)

            yield Case(f"{label}[{number}] {str(way.dtype).removeprefix('torch.')}", b"", judged)


def spread(count: int, samples: int) -> list[int]:
    """The numbers of at most so many of `count` samples, spread over all."""
    return sorted({(2 * k + 1) * count // (2 * samples) for k in range(min(samples, count))})


def sample_flags(text: str, names: str, samples: int) -> ArgumentParser:
    """The flags of a command about PyTorch's samples; `names` and `samples` are what they are of and how many."""
    flags = parser(text, 0)
    flags.add_argument("--only", default="", help=f"a pattern of the {names}' names")
    flags.add_argument("--samples", type=int, default=samples, help="of each, spread over all")
    flags.add_argument("--target", default="reference")
    flags.add_argument("--by", choices=["compile", "backend"], default="compile")
    flags.add_argument("--table", type=Path, help="a file for one line for each case")
    flags.add_argument("--dtypes", default="float32", help="PyTorch's names, with commas between them")
    return flags


def judge_all(given: Namespace, cases: Callable[[str, int, Way], Iterator[Case]], *, strided: bool = False) -> int:
    """Judge what `cases` draws of a pattern, a count and a way; the exit status."""
    torch.set_num_threads(1)
    dtypes = [getattr(torch, name) for name in given.dtypes.split(",")]
    ways = [Way(given.target, given.by == "backend", dtype, strided) for dtype in dtypes]
    warm_up(ways[0])
    drawn = itertools.chain.from_iterable(cases(given.only, given.samples, way) for way in ways)
    tally = run_cases(noted(drawn, given.table), Limits(given.seconds, 16 << 30))
    return 0 if tally.is_good and not tally.counts["differs"] else 1


def main() -> int:
    """The command."""
    flags = sample_flags(__doc__ or "", "operators", 3)
    flags.add_argument("--strided", action="store_true", help="the elements of inputs lie apart in memory")
    given = flags.parse_args()
    return judge_all(given, cases, strided=given.strided)


def warm_up(way: Way) -> None:
    """Import what each child needs."""
    operator = next(one for one in op_db if one.name == "add")
    way.engine(Sample(operator.op, next(iter(operator.sample_inputs("cpu", torch.float32))), torch.float32))


def noted(found: Iterator[Case], table: Path | None) -> Iterator[Case]:
    """The cases, with what each tells written to a file as well."""
    for case in found:
        if table is None:
            yield case
            continue

        def judged(content: bytes, tell: Tell, case: Case = case) -> None:
            def both(outcome: str, text: str) -> None:
                with table.open("a") as file:
                    file.write(f"{case.name}\t{outcome}\t{' '.join(text.split())[:300]}\n")
                tell(outcome, text)

            case.judge(content, both)

        yield Case(case.name, case.content, judged)


if __name__ == "__main__":
    sys.exit(main())
