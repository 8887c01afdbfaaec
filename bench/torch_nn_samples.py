"""PyTorch's own samples of its modules through `mlirt.compile` or torch.compile.

    python bench/torch_nn_samples.py --samples 2
    python bench/torch_nn_samples.py --only 'Conv|Pool' --by backend --dtypes float32,float16

The samples are those of `torch.testing._internal.common_modules.module_db`, in inference, each in its own process. All
tensors among the arguments are inputs. Outcomes and exit status are those of `torch_op_samples`.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import copy
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from isolated_case import Case
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as pytree
from torch_op_samples import Tell, Way, judge_all, judge_module, sample_flags, spread


class Called(torch.nn.Module):
    """A module whose tensors among the arguments are inputs, and all else is built in."""

    def __init__(self, module: Any, call: Any) -> None:
        super().__init__()
        self.module = module
        leaves, self._spec = pytree.tree_flatten((tuple(call.args), dict(call.kwargs)))
        self.inputs = tuple(one.detach() for one in leaves if isinstance(one, torch.Tensor))
        self._others = [None if isinstance(one, torch.Tensor) else (one,) for one in leaves]

    def forward(self, *tensors: Any) -> Any:
        """The module of the tensors."""
        rest = iter(tensors)
        leaves = [next(rest) if other is None else other[0] for other in self._others]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return self.module(*args, **kwargs)

    def exact(self) -> Called | None:
        """The same in double precision; None where that cannot be had."""
        try:
            made = copy.deepcopy(self).double()
        except Exception:
            return None
        made.inputs = tuple(one.double() if one.is_floating_point() else one for one in self.inputs)
        return made


def _drawn(info: Any, dtype: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=False)
        return [one for one in found if one.forward_input is not None]


def judge(name: str, number: int, way: Way, tell: Tell) -> None:
    """Tell the outcome of one sample."""
    warnings.simplefilter("ignore")
    torch.manual_seed(number)
    info = next(one for one in module_db if one.name == name)
    sample = _drawn(info, way.dtype)[number]
    made = sample.constructor_input
    module = info.module_cls(*made.args, **made.kwargs).to(dtype=way.dtype)
    called = Called(module, sample.forward_input).eval()
    judge_module(called, way, called.exact, tell)


def cases(only: str, samples: int, way: Way) -> Iterator[Case]:
    """One for each sample."""
    for info in module_db:
        if re.search(only, info.name) is None or way.dtype not in info.supported_dtypes("cpu"):
            continue
        try:
            count = len(_drawn(info, way.dtype))
        except Exception as error:
            print(f"{info.name}: no samples: {type(error).__name__}: {str(error)[:100]}", flush=True)
            continue
        for number in spread(count, samples):

            def judged(_: bytes, tell: Tell, name: str = info.name, k: int = number) -> None:
                judge(name, k, way, tell)

            yield Case(f"{info.name}[{number}] {str(way.dtype).removeprefix('torch.')}", b"", judged)


def main() -> int:
    """The command."""
    return judge_all(sample_flags(__doc__ or "", "modules", 2).parse_args(), cases)


if __name__ == "__main__":
    sys.exit(main())
