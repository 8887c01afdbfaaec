"""The values of flags: shapes, files and numbers, read from text; what is wrong is an argparse error that says why."""

from __future__ import annotations

import argparse

from mlirt.errors import InvalidInputError

Shape = tuple[int, ...]


def shapes(text: str) -> dict[str, Shape]:
    """`input0:1x3x224x224,input1:1x8` as shapes by name; `scalar:` is a shape of no dimensions."""
    found: dict[str, Shape] = {}
    for name, shape in _pairs(text, "NAME:1x3x224x224").items():
        sizes = shape.split("x") if shape else []
        if not all(size.isdigit() for size in sizes):
            raise argparse.ArgumentTypeError(f"{name}:{shape}: expected dimensions such as 1x3x224x224")
        found[name] = tuple(map(int, sizes))
    return found


def precisions(text: str) -> dict[str, str]:
    """`conv1:fp32,*:fp16` as formats by layer; of two for one layer the last counts."""
    found: dict[str, str] = {}
    for item in text.split(","):
        name, colon, precision = item.rpartition(":")
        if not colon or not name or precision not in ("fp32", "fp16", "int8"):
            raise argparse.ArgumentTypeError(f"{item!r}: expected LAYER:fp32, LAYER:fp16 or LAYER:int8")
        found[name.strip("'\"")] = precision
    return found


def states(text: str) -> dict[str, str]:
    """`h0:h1,c0:c1` as the output of each input."""
    return _pairs(text, "INPUT:OUTPUT, such as h0:h1")


def names(text: str) -> list[str]:
    """`conv1,relu1` as a list."""
    return [name for name in text.split(",") if name]


def debug_files(text: str) -> dict[str, str]:
    """`conv1:conv1.npy,relu1:relu1.raw` as a file by tensor."""
    return _pairs(text, "TENSOR:FILE, such as conv1:conv1.npy")


def output_types(text: str) -> dict[str, str]:
    """`conv1:fp16+fp32,*:fp32` as the type of the first output by layer."""
    found: dict[str, str] = {}
    for item in text.split(","):
        name, colon, types = item.rpartition(":")
        named = types.split("+")
        if not colon or not name or not all(one in ("fp32", "fp16", "int32", "int8") for one in named):
            raise argparse.ArgumentTypeError(
                f"{item!r}: expected LAYER:TYPE or LAYER:TYPE+TYPE, TYPE fp32, fp16, int32, int8"
            )
        found[name.strip("'\"")] = named[0]
    return found


def io_formats(text: str) -> list[str]:
    """`fp16:chw,fp32:hwc+chw` as one text for each tensor, or one for all."""
    return text.split(",")


def memory_pools(text: str) -> dict[str, int]:
    """`workspace:1024.5,dlaSRAM:1` in MiB as the bytes of each pool."""
    found: dict[str, int] = {}
    for name, size in _pairs(text, "POOL:MIB").items():
        if name not in ("workspace", "dlaSRAM", "dlaLocalDRAM", "dlaGlobalDRAM"):
            raise argparse.ArgumentTypeError(f"{name}: expected workspace, dlaSRAM, dlaLocalDRAM or dlaGlobalDRAM")
        found[name] = mebibytes(size)
    return found


_PREVIEWS = ("fasterDynamicShapes0805", "disableExternalTacticSourcesForCore0805")


def previews(text: str) -> dict[str, bool]:
    """`+fasterDynamicShapes0805,-disableExternalTacticSourcesForCore0805`: whether each is switched on."""
    found: dict[str, bool] = {}
    for item in text.split(","):
        sign, name = item[:1], item[1:]
        if sign not in ("+", "-") or name not in _PREVIEWS:
            raise argparse.ArgumentTypeError(f"{item!r} is no + or - before one of {', '.join(_PREVIEWS)}")
        found[name] = sign == "+"
    return found


def mebibytes(text: str) -> int:
    """A number of MiB as bytes."""
    return int(number(text) * (1 << 20))


def files(text: str) -> dict[str, str]:
    """`name:file.npy,other:file.bin` as paths by name."""
    return _pairs(text, "NAME:FILE")


def _pairs(text: str, form: str) -> dict[str, str]:
    """Names may hold colons, as in `input:0:1x3`, so the last colon separates."""
    found: dict[str, str] = {}
    for item in text.split(","):
        name, colon, value = item.rpartition(":")
        name = name.strip("'\"")
        if not colon or not name:
            raise argparse.ArgumentTypeError(f"{item!r}: expected {form}")
        if name in found:
            raise argparse.ArgumentTypeError(f"{name} is given twice")
        found[name] = value
    return found


def natural(text: str) -> int:
    """A whole number that is not negative."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 on, got {text!r}")
    return int(text)


def device(text: str) -> int | str:
    """The number of a GPU, or the name of a device."""
    if text.isdigit():
        return int(text)
    from mlirt.dialects.device_files import read_device

    try:
        read_device(text)
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def positive(text: str) -> int:
    """A whole number from 1 on."""
    value = natural(text)
    if not value:
        raise argparse.ArgumentTypeError("expected a whole number from 1 on, got '0'")
    return value


def number(text: str) -> float:
    """A number that is not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, got {text!r}")
    return value


def share(text: str) -> float:
    """A number in [0, 1]."""
    value = number(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, such as 0.99, got {text!r}")
    return value


def percentiles(text: str) -> tuple[float, ...]:
    """Numbers in [0, 100]."""
    values = tuple(number(item) for item in text.split(","))
    if max(values) > 100:
        raise argparse.ArgumentTypeError(f"{max(values):g} is beyond 100")
    return values
