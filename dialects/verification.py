"""Checks a module op by op, and says which op breaks its definition."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, Region
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

import mlirt.dialects.xdsl_compat  # pyright: ignore[reportUnusedImport]  # noqa: F401  (failures must not dump the module)
from mlirt.dialects.diagnostics import VerificationError
from mlirt.errors import MlirtError


def verify(module: Operation, *, nested: bool = True) -> None:
    """Raise the first `VerificationError` of a module, or of any other op, with or without what is in it."""
    for error in verification_errors(module, nested=nested):
        raise error


def verification_errors(module: Operation, *, nested: bool = True) -> Iterator[VerificationError]:
    """Every op that breaks its definition, inner ops before the ops around them."""
    for op in module.walk(region_first=True) if nested else [module]:
        if any(_lacks_terminator(region) for region in op.regions):
            yield VerificationError(op, "has an empty block where a terminator is expected")
            continue
        try:
            op.verify(verify_nested_ops=False)
        except (VerifyException, ValueError, MlirtError) as error:
            yield VerificationError(op, first_lines(error).removeprefix(f"{op.name}: "))


def _lacks_terminator(region: Region) -> bool:
    block = region.first_block
    if block is None or block is not region.last_block or block.first_op is not None:
        return False
    return region.parent is not None and not region.parent.has_trait(NoTerminator)


def first_lines(error: BaseException) -> str:
    """The text of an error as one line."""
    return " ".join(line.strip() for line in str(error).splitlines() if line.strip()) or type(error).__name__
