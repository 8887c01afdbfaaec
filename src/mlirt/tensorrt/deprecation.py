"""Warnings for names that TensorRT 8.5 keeps for old scripts (tensorrt-features.md#3.18)."""

import warnings


def deprecated(now: str, level: int = 3) -> None:
    """Warn the caller of a deprecated name, `level` frames up, which name to use now."""
    warnings.warn(f"Use {now} instead.", DeprecationWarning, stacklevel=level)
