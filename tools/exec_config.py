"""The configuration of rt-exec's build: that of --config, with the flags that were given in place of its settings."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mlirt.builder.profiles import read_profiles
from mlirt.errors import InvalidInputError
from mlirt.tools.build_settings import measured_libraries
from mlirt.tools.int8_build import precision_of
from mlirt.tools.rt_exec_profiles import profiles_of
from mlirt.tools.trtexec_log import log

if TYPE_CHECKING:
    from mlirt.builder.config.build_config import BuildConfig

_PRECISIONS = ("fp16", "tf32", "int8", "best")
_PROFILES = ("minShapes", "optShapes", "maxShapes")
_SAME: Mapping[str, str] = {
    "target": "target",
    "cpu": "cpu",
    "gpu": "gpu",
    "system": "system",
    "timingCacheFile": "timing_cache",
    "heuristic": "heuristic",
    "cpuTiming": "cpu_timing",
    "avgTiming": "avg_timing_iterations",
    "minTiming": "min_timing_iterations",
    "shapeCache": "shape_cache_mb",
    "threads": "threads",
    "streams": "streams",
    "inputIOFormats": "input_formats",
    "outputIOFormats": "output_formats",
    "directIO": "direct_io",
    "refit": "refittable",
    "state": "state",
    "markDebug": "debug",
    "weights": "weights",
    "first": "from_phase",
    "fastMath": "fast_math",
    "pipeline_edit": "pipeline",
}
"""Flags that say what a setting says, by its name."""


def take_config(arguments: Namespace, given: frozenset[str]) -> None:
    """Read --config, and let the flags that were not given say what it says, for whoever asks them."""
    from mlirt.builder.config.build_config import BuildConfig

    base = BuildConfig() if arguments.config is None else BuildConfig.load(arguments.config)
    arguments.given, arguments.base = given, base
    for flag, setting in _SAME.items():
        if flag not in given and setting in base.changes():
            setattr(arguments, flag, getattr(base, setting))
    if not given.intersection(_PRECISIONS):
        for flag in ("fp16", "tf32", "int8"):
            setattr(arguments, flag, flag in base.precision.split("+"))
    if base.profiles and not given.intersection(_PROFILES):
        shapes = read_profiles(base.profiles)[0]
        for number, flag in enumerate(_PROFILES):
            setattr(arguments, flag, {name: one.shapes[number] for name, one in shapes.items()})


def config_of(arguments: Namespace, more: Mapping[str, Any]) -> BuildConfig:
    """What the flags ask for, with `more` settings that others have found."""
    given: frozenset[str] = arguments.given
    base: BuildConfig = arguments.base
    settings = {setting: getattr(arguments, flag) for flag, setting in _SAME.items() if flag in given}
    settings |= {"streams": arguments.streams, "device": device_of(arguments)}
    if given.intersection(_PRECISIONS):
        settings["precision"] = precision_of(arguments)
    if given.intersection(_PROFILES) or not base.profiles:
        settings["profiles"] = profiles_of(arguments)
    if given.intersection(("tacticSources", "preview")):
        settings["tactic_sources"] = measured_libraries(arguments)
    if given.intersection(("memPoolSize", "workspace")):
        settings["workspace"] = arguments.memPoolSize.get("workspace", arguments.workspace)
    try:
        return base.replace(**{**settings, **more})
    except InvalidInputError as error:
        raise InvalidInputError(_as_flag(str(error), given)) from error


def _as_flag(text: str, given: frozenset[str]) -> str:
    """An error of a setting, with the name of the flag where one has said it."""
    name, colon, rest = text.partition(":")
    flags = [flag for flag, setting in _SAME.items() if flag in given and colon and setting == name]
    return f"--{flags[0].replace('first', 'from').replace('_', '-')}:{rest}" if flags else text


def device_of(arguments: Namespace) -> str | None:
    """The device that kernels are chosen for: --device names one, unless it is the number of a GPU, else --config."""
    base: BuildConfig = arguments.base
    return arguments.device if isinstance(arguments.device, str) else base.device


def asked_precisions(arguments: Namespace, kept: Mapping[str, str]) -> dict[str, Any]:
    """What layers shall compute in, those that --accuracyTarget keeps in float among them, and whether they must."""
    for flag in ("layerPrecisions", "layerOutputTypes"):
        if getattr(arguments, flag) and arguments.precisionConstraints == "none":
            log("W", f"--{flag} is ignored without --precisionConstraints=prefer or --precisionConstraints=obey.")
            return {}
    types = {name: one for name, one in arguments.layerOutputTypes.items() if one != "int32"}
    asked = {**types, **arguments.layerPrecisions, **kept}
    options: dict[str, Any] = {"layer_precisions": asked} if asked else {}
    return options | ({"obey_layer_precisions": True} if arguments.precisionConstraints == "obey" else {})
