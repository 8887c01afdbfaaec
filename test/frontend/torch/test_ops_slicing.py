"""Parts of tensors, and tensors from parts."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import check  # noqa: E402

nn: Any = torch.nn
F: Any = torch.nn.functional
torch.manual_seed(0)
X = torch.randn(2, 3, 8, 10)
V = torch.randn(2, 5, 6)


def written_in_place(x: Any) -> Any:
    x = x.clone()
    x[:, 0] = 1
    x[:, 1:3, ::2] += 2
    x[-1] *= 3
    return x.relu_()


CASES: dict[str, tuple[Any, ...]] = {
    "slices": (lambda x: (x[:, 1:3], x[..., ::2], x[1], x[:, -2:], x[:, :, 1:-1:2], x.narrow(1, 1, 2)), V),
    "parts": (lambda x: (*x.split(2, 1), *x.chunk(3, 2), *x.unbind(0), *torch.tensor_split(x, 2, 1)), V),
    "joined": (lambda x: (torch.cat([x, x[:, :1]], 1), torch.stack([x, x], -1), torch.hstack([x, x])), V),
    "in place": (written_in_place, V),
    "reflection": (nn.ReflectionPad2d(2), X),
    "replication": (nn.ReplicationPad2d(2), X),
    "circular": (nn.CircularPad2d(2), X),
    "zeros": (nn.ZeroPad2d((1, 2, 0, -1)), X),
    "value": (lambda x: F.pad(x, (1, 0), value=3.5), V),
    "windows": (lambda x: (x.unfold(1, 2, 1), x.unfold(2, 3, 2)), V),
    "columns": (nn.Unfold((2, 2), stride=2), X),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)
