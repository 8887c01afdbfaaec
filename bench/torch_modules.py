"""Modules through `mlirt.compile` and `torch.compile(backend="mlirt")`, static and with dynamic batch and length.

    python bench/torch_modules.py
    python bench/torch_modules.py --group timm --only resnet
    python bench/torch_modules.py --group written
    python bench/torch_modules.py --unseen --only 'timm.*vit'

A module is right where the results have PyTorch's types, shapes and numbers (within 2e-4 of an element's size, or 3
times PyTorch's own distance from double precision) by four ways, each in a process of its own: both functions, for
fixed lengths and with one engine for four batches and lengths. Outcomes of a way:

right       as above
parts       right under torch.compile, with operators left to PyTorch or with more engines than one
again       right under torch.compile, but other lengths made other engines
refused     an error that says what the engine cannot have
untraced    torch.export cannot trace the module
no module   the module cannot be made or run by PyTorch here
differs     other numbers, shapes or types
exception, internal, crash, hang: as in the other fuzzes

`--group written` takes the modules of `torch_written_modules`, of which some are refused, `--group further` those of
`torch_further_modules`; `--unseen` the networks of
torchvision, timm and transformers that no case names. The exit status is 1 where
fewer modules than `--least` are right by all ways, or one differs or ends otherwise than in an error of one line.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import argparse
import copy
import logging
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from gpu_zoo_modules import fill_zero_weights, settle
from isolated_case import BAD, Case, Limits, run_isolated, said_by
from torch_closeness import difference
from torch_further_modules import further
from torch_module_cases import GROUPS, ModuleCase, image
from torch_unseen_modules import unseen
from torch_written_modules import written

import mlirt
from mlirt.errors import UnsupportedError

Tell = Callable[[str, str], None]

EXAMPLE = (7, 13)
OTHERS = ((5, 20), (2, 31), (1, 8))
"""Batches and lengths; PyTorch specialises on 1, so that it comes last."""
MAX_LENGTH = 48


@dataclass(frozen=True)
class Way:
    """One of the four ways."""

    by_backend: bool
    dynamic: bool

    @property
    def name(self) -> str:
        """As it stands above its column."""
        return ("torch.compile" if self.by_backend else "compile") + (" dynamic" if self.dynamic else "")


ALL_GROUPS = {**GROUPS, "written": written, "further": further}
WAYS = [Way(by_backend, dynamic) for by_backend in (False, True) for dynamic in (False, True)]


class _Engines:
    """The engines that the back end makes, and what it leaves to PyTorch."""

    def __init__(self) -> None:
        from mlirt.builder.from_torch import graph_engines

        self.count, self.left = 0, [""]
        first = graph_engines.PartEngine.__init__

        def counted(engine: Any, *args: Any) -> None:
            first(engine, *args)
            self.count += 1

        setattr(graph_engines.PartEngine, "__init__", counted)
        handler = logging.Handler()
        handler.emit = lambda record: self.left.append(record.getMessage())
        logging.getLogger("mlirt").addHandler(handler)


def judge(case: ModuleCase, way: Way, target: str, tell: Tell) -> None:
    """Tell the outcome of one module by one way."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    try:
        module = case.make().eval()
        fill_zero_weights(module)
        drawn = [case.inputs(*sizes) for sizes in (EXAMPLE, *(OTHERS if way.dynamic else ()))]
        settle(module, list(case.inputs(8, 16)))
        with torch.no_grad():
            wanted = [module(*inputs) for inputs in drawn]
    except Exception as error:
        return tell("no module", f"{type(error).__name__}: {error}")
    tell("begun", "")
    engines = _Engines()
    try:
        run = _compiled(case, module, way, target, drawn[0])
        with torch.no_grad():
            found = [run(*drawn[0])]
            once = engines.count
            found += [run(*inputs) for inputs in drawn[1:3]]
            again = engines.count - once
            found += [run(*inputs) for inputs in drawn[3:]]
    except UnsupportedError as error:
        return tell("untraced" if "cannot trace" in str(error) else "refused", str(error))
    except Exception as error:
        return tell(*said_by(error))
    for inputs, one, two in zip(drawn, found, wanted, strict=True):
        text = difference(one, two) and difference(one, two, _exact(module, inputs))
        if text:
            return tell("differs", f"{[list(part.shape) for part in inputs]}: {text}")
    parts = way.by_backend and (once != 1 or len(engines.left) > 1)
    tell("again" if again else "parts" if parts else "right", f"{once} engines {again} more {engines.left[-1]}")


def _compiled(case: ModuleCase, module: Any, way: Way, target: str, example: tuple[Any, ...]) -> Callable[..., Any]:
    if way.by_backend:
        from mlirt.builder.from_torch.dynamo_backend import mlirt_backend

        compiled = torch.compile(module, backend=mlirt_backend, options={"target": target}, dynamic=None)

        def with_recurrent(*inputs: Any) -> Any:
            # `dynamic=True` would take the sizes of pictures as well for ones that change.
            for one, axes in zip(inputs, case.axes if way.dynamic else (), strict=False):
                for axis in axes:
                    torch._dynamo.maybe_mark_dynamic(one, axis)
            with mlirt.capture_recurrent():
                return compiled(*inputs)

        return with_recurrent
    shapes = _dynamic_shapes(case) if way.dynamic else None
    # The shapes are those of the arguments of `forward`, which may take any number of them.
    found: Any = mlirt.compile(module, example, target=target, dynamic_shapes=shapes)
    return found


def _dynamic_shapes(case: ModuleCase) -> tuple[dict[int, Any], ...]:
    dims = {
        "batch": torch.export.Dim("batch", min=1, max=64),
        "length": torch.export.Dim("length", min=8, max=MAX_LENGTH),
    }
    return tuple({axis: dims[name] for axis, name in axes.items()} for axes in case.axes)


def _exact(module: Any, inputs: tuple[Any, ...]) -> Any:
    try:
        wide = copy.deepcopy(module).double()
        with torch.no_grad():
            return wide(*(one.double() if one.is_floating_point() else one for one in inputs))
    except Exception:
        return None


def chosen(groups: list[str], only: str, is_unseen: bool) -> Iterator[tuple[str, ModuleCase]]:
    """The cases with their groups."""
    for group in groups:
        for case in unseen(group) if is_unseen else ALL_GROUPS[group]():
            if re.search(only, f"{group}.{case.name}"):
                yield group, case


def _warm_up(target: str) -> None:
    """Import what each child needs, by one small engine of each function."""
    module: Any = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()).eval()
    inputs: tuple[Any, ...] = (torch.randn(2, 3),)
    case = ModuleCase("first", torch.nn.Identity, image(3), ({},))
    for way in (Way(False, False), Way(True, False)):
        with torch.no_grad():
            _compiled(case, module, way, target, inputs)(*inputs)


def main() -> int:
    """The command."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--group", default=",".join(GROUPS))
    flags.add_argument("--only", default="", help="a pattern of the modules' names")
    flags.add_argument("--unseen", action="store_true")
    flags.add_argument("--target", default="cpu")
    flags.add_argument("--ways", default="", help="a pattern of the ways' names")
    flags.add_argument("--least", type=int, default=0)
    flags.add_argument("--seconds", type=float, default=200.0, help="processor time of one module by one way")
    given = flags.parse_args()
    torch.set_num_threads(1)
    _warm_up(given.target)
    ways = [way for way in WAYS if re.search(given.ways, way.name)]
    counts: dict[str, Counter[str]] = {way.name: Counter() for way in ways}
    right = total = 0
    for group, case in chosen(given.group.split(","), given.only, given.unseen):
        row: list[str] = []
        for way in ways:

            def judged(_: bytes, tell: Tell, case: ModuleCase = case, way: Way = way) -> None:
                judge(case, way, given.target, tell)

            outcome, text, _ = run_isolated(Case(case.name, b"", judged), Limits(given.seconds, 16 << 30))
            row.append(outcome)
            counts[way.name][outcome] += 1
            told = "" if outcome == "right" else f": {' '.join(text.split())[:500]}"
            print(f"    {group}.{case.name} {way.name}: {outcome}{told}", flush=True)
        total += 1
        right += all(outcome in ("right", "parts") for outcome in row)
        print(f"{group}.{case.name}: {', '.join(row)}", flush=True)
    for way, found in counts.items():
        print(f"{way}: {', '.join(f'{count} {outcome}' for outcome, count in found.most_common())}")
    print(f"{right} of {total} are right by all ways")
    bad = sum(found[outcome] for found in counts.values() for outcome in (*BAD, "differs"))
    return 1 if bad or right < given.least else 0


if __name__ == "__main__":
    sys.exit(main())
