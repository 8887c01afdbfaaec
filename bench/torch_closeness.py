"""How far results of an engine are from those of the PyTorch module that it was made from."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

TOLERANCE = 2e-4
"""Of an element's size, or of 1 where that is larger."""
ROUNDINGS = 2
"""Units in the last place of types that are coarser than that."""


def difference(found: Any, wanted: Any, exact: Any = None) -> str:
    """What is wrong with results, in a few words; empty where they are right.

    `exact` are the results in double precision, if there are any: elements that are no further from those than 3 times
    PyTorch's own are right as well.
    """
    left, spec = pytree.tree_flatten(found)
    right, other = pytree.tree_flatten(wanted)
    if [type(one) for one in left] != [type(one) for one in right]:
        return f"its structure is {spec}, expected {other}"
    precise = pytree.tree_leaves(exact) if exact is not None else []
    precise = precise if len(precise) == len(right) else [None] * len(right)
    for k, (one, two, three) in enumerate(zip(left, right, precise, strict=True)):
        text = _of_leaf(one, two, three)
        if text:
            return f"result {k}: {text}"
    return ""


def _of_leaf(found: Any, wanted: Any, exact: Any) -> str:
    if not isinstance(wanted, torch.Tensor):
        return "" if found == wanted or (found != found and wanted != wanted) else f"{found}, expected {wanted}"
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return f"{found.dtype}{list(found.shape)}, expected {wanted.dtype}{list(wanted.shape)}"
    one, two = found.detach().double(), wanted.detach().double()
    alike = (one == two) | (one.isnan() & two.isnan())
    far = ((one - two).abs() > _tolerance(wanted.dtype) * two.abs().clamp(min=1)) | ~one.isfinite() | ~two.isfinite()
    far &= ~alike
    if far.any() and isinstance(exact, torch.Tensor) and exact.shape == wanted.shape:
        three = exact.detach().double()
        far &= ~((one - three).abs() <= 3 * (two - three).abs())
    if not far.any():
        return ""
    place = far.nonzero()[0].tolist()
    return f"{int(far.sum())} of {far.numel()} elements, {one[tuple(place)]} at {place}, expected {two[tuple(place)]}"


def _tolerance(dtype: Any) -> float:
    return max(TOLERANCE, ROUNDINGS * torch.finfo(dtype).eps) if dtype.is_floating_point else TOLERANCE
