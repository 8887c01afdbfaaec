"""The libraries beside mlirt's own kernels that a build may take tactics from: their names, masks and flags."""

from __future__ import annotations

from collections.abc import Iterable

from mlirt.errors import InvalidInputError
from mlirt.tensorrt.build_enums import TacticSource

_FEATURES = {TacticSource.CUBLAS_LT: "cublas_lt", TacticSource.CUDNN: "cudnn"}
"""What a target is said to have where a library may be used; the others bring nothing that kernels here lack."""

USED = tuple(source.name for source in _FEATURES)


def features_of_sources(names: Iterable[str]) -> frozenset[str]:
    """The features of a target whose builds may use these libraries; raises `InvalidInputError` for an unknown one."""
    wanted = list(names)
    unknown = [name for name in wanted if name not in USED]
    if unknown:
        raise InvalidInputError(f"tactic source {unknown[0]!r} is not used: expected some of {', '.join(USED)}")
    return frozenset(_FEATURES[TacticSource[name]] for name in wanted)


def sources_of_mask(mask: int) -> tuple[str, ...]:
    """The names of those libraries of TensorRT's mask that are used here."""
    return tuple(source.name for source in _FEATURES if mask >> source & 1)


def sources_of_flag(text: str) -> tuple[str, ...]:
    """What trtexec's `--tacticSources=+CUBLAS_LT,-CUBLAS` turns on, used here or not; none is on by itself."""
    on: dict[str, bool] = {}
    for item in text.split(","):
        sign, name = item[:1], item[1:]
        if sign not in ("+", "-") or name not in TacticSource.__members__:
            names = ", ".join(TacticSource.__members__)
            raise InvalidInputError(f"--tacticSources: {item!r} is no + or - before one of {names}")
        on[name] = sign == "+"
    return tuple(name for name, wanted in on.items() if wanted)


def open_sources(features: Iterable[str]) -> None:
    """Raise `PlanError` where a library that a build on this machine may use is not installed."""
    from mlirt.runtime.cuda_driver import open_driver

    for feature in sorted(set(features).intersection(_FEATURES.values())):
        open_driver().library(feature)
