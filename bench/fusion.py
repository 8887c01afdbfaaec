"""What fusion makes of a folder of PyTorch modules: right or not on the CPU, and how many launches on both targets.

    python bench/fusion.py FOLDER [--only PART,..] [--full] [--targets cpu,cuda]

Each file below FOLDER has `Model`, `get_init_inputs()` and `get_inputs()`. Sizes at the top of a file are reduced
unless `--full` is given (bench/fusion_modules.py says how). A module is right where its largest error, over the largest
value, against the module in float64 is at most ten times that of PyTorch in float32, and at least 1e-5 is allowed.
Launches for "cuda" are counted in a plan, which needs no GPU. Nothing is timed. Needs PyTorch.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fusion_modules import Case, load


def main() -> None:
    """One line a module, and the counts."""
    options = _arguments()
    paths = sorted(path for path in options.folder.rglob("*.py") if _wanted(str(path), options.only))
    counts: dict[str, int] = {}
    for path in paths:
        verdict, text = judge(path, options.targets.split(","), reduced=not options.full)
        counts[verdict] = counts.get(verdict, 0) + 1
        print(f"{path.stem[:48]:48} {verdict:8} {text}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())) or "no modules")


def judge(path: Path, targets: Sequence[str], *, reduced: bool = True) -> tuple[str, str]:
    """right, wrong, refused, or skipped where the file itself fails; and what was found."""
    import mlirt

    try:
        case = load(path, reduced=reduced)
        eager, exact = _results(case)
    except Exception as error:
        return "skipped", f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    launches: list[str] = []
    verdict, text = "right", ""
    for target in targets:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                engine: Any = mlirt.compile(case.module, tuple(case.inputs), target=target, heuristic=True)
        except mlirt.MlirtError as error:
            return "refused", f"{target}: {str(error)[:200]}"
        launches.append(f"{target} {len(engine.engine.plan.manifest.launches)} launches")
        if target == "cpu":
            found, own = _error(_leaves(engine(*case.inputs)), exact), _error(eager, exact)
            verdict = "right" if found <= max(10 * own, 1e-5) else "wrong"
            text = f"error {found:.1e} (PyTorch {own:.1e}) "
    return verdict, text + ", ".join(launches)


def _results(case: Case) -> tuple[list[Any], list[Any]]:
    """The results in float32 and in float64."""
    import copy

    import torch

    with torch.no_grad():
        eager = _leaves(case.module(*case.inputs))
        doubled = [one.double() if one.is_floating_point() else one for one in case.inputs]
        return eager, _leaves(copy.deepcopy(case.module).double()(*doubled))


def _leaves(results: Any) -> list[Any]:
    from torch.utils._pytree import tree_leaves

    return [leaf.double() for leaf in tree_leaves(results)]


def _error(found: Sequence[Any], exact: Sequence[Any]) -> float:
    return max(float((a - b).abs().max()) / max(float(b.abs().max()), 1e-30) for a, b in zip(found, exact, strict=True))


def _wanted(path: str, only: str) -> bool:
    return not only or any(part in path for part in only.split(","))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="parts of paths, such as level2/1")
    parser.add_argument("--full", action="store_true", help="sizes as the files have them")
    parser.add_argument("--targets", default="cpu,cuda")
    return parser.parse_args()


if __name__ == "__main__":
    main()
