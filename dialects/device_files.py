"""Reads what is known of a device from its file, `dialects/devices/<name>.toml` or one of your own.

A file says `like = "h200"` where a device is described by what differs from another one: figures that it does not say
are that one's, and times that it does not say are made from that one's by the ratio of the figure that they grow with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, cast, get_args, get_origin, get_type_hints

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.gpu_device import FIGURES, GpuDevice, GrowsWith, derived
from mlirt.errors import InvalidInputError

Device: TypeAlias = "GpuDevice | CpuDevice"
_HERE = Path(__file__).parent / "devices"
_KINDS: dict[str, type[GpuDevice | CpuDevice]] = {"gpu": GpuDevice, "cpu": CpuDevice}
_CHANGE, _FILE = "+", ".toml"
_CLUSTERS = "clusters"


def device_names() -> tuple[str, ...]:
    """The devices that a file here describes."""
    return tuple(sorted(path.stem for path in _HERE.glob(f"*{_FILE}")))


def read_device(text: str) -> Device:
    """The device of a name, or of the path of a file that ends in `.toml`; `+processors=114` behind it and the like
    change figures of a GPU.

    Raises `InvalidInputError` where there is no such device, or its file is wrong.
    """
    name, *changes = text.split(_CHANGE)
    changed = dict(_changed(text, change) for change in changes)
    return _read(_path(name), tuple(sorted(changed.items())))


def gpu_device(text: str) -> GpuDevice:
    """A GPU by its description; raises `InvalidInputError` for a processor."""
    found = read_device(text)
    if not isinstance(found, GpuDevice):
        raise InvalidInputError(f"the device {text} is no GPU, but target cuda was asked for")
    return found


def cpu_device(text: str) -> CpuDevice:
    """A family of processors by its name; raises `InvalidInputError` for a GPU."""
    found = read_device(text)
    if not isinstance(found, CpuDevice):
        raise InvalidInputError(f"the device {text} is a GPU, but target cpu was asked for")
    return found


def table_of(text: str) -> dict[str, Any]:
    """What a file says, with all that it says by `like`: the table of the device alone, without scaling."""
    return _table(_path(text))


def _path(name: str) -> Path:
    if name.endswith(_FILE):
        return Path(name).resolve()
    if name not in device_names():
        from difflib import get_close_matches

        near = get_close_matches(name, device_names(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInputError(
            f"there is no device {name!r}: expected one of {', '.join(device_names())}, or a .toml file{hint}"
        )
    return _HERE / f"{name}{_FILE}"


def _changed(text: str, change: str) -> tuple[str, float]:
    name, _, number = change.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if name not in FIGURES or not 0 < value < float("inf"):
        raise InvalidInputError(
            f"device {text}: {change!r} is no change of a figure: expected +NAME=NUMBER of {', '.join(FIGURES)}"
        )
    return name, int(value) if value.is_integer() else value


def _table(path: Path) -> dict[str, Any]:
    import tomllib  # for a device that is named: rt-opt starts without it

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInputError(f"the device file {path} cannot be read: {error}") from error


@lru_cache(maxsize=64)
def _read(path: Path, changes: tuple[tuple[str, float], ...]) -> Device:
    table = _resolved(_with_changes(_table(path), changes, path), path, ())
    kind = table.pop("kind", "")
    if kind not in _KINDS:
        raise InvalidInputError(f"the device file {path}: kind is {kind!r}, expected one of {', '.join(_KINDS)}")
    if kind == "cpu" and changes:
        raise InvalidInputError(f"the device file {path}: only figures of GPUs can be changed")
    return _record(_KINDS[kind], {**table, "name": path.stem}, str(path))


def _with_changes(table: dict[str, Any], changes: tuple[tuple[str, float], ...], path: Path) -> dict[str, Any]:
    """The same device with other figures: like itself, so that its times follow."""
    return {"kind": table.get("kind", ""), "like": str(path), **dict(changes)} if changes else table


def _resolved(table: dict[str, Any], path: Path, seen: tuple[str, ...]) -> dict[str, Any]:
    """A whole table: with what it says by `like`, scaled."""
    like = table.pop("like", None)
    if like is None:
        return table
    other = Path(like) if like.endswith(_FILE) and Path(like).is_absolute() else _beside(like, path)
    if str(other) in seen:
        raise InvalidInputError(f"the device file {path}: the devices that it is like are like each other")
    base = _resolved(_table(other), other, (*seen, str(other)))
    figures = {name: value for name, value in {**base, **table}.items() if not _is_table(value)}
    if table.get("kind") != "gpu":
        return _merged(base, table)
    ratios = _ratios(figures, base, path)
    if _CLUSTERS not in table:
        figures[_CLUSTERS] = [int(count * ratios.get("processors", 1.0)) for count in base[_CLUSTERS]]
    scaled = _scaled(GpuDevice, {**base, **figures}, ratios)
    return _merged(scaled, table)


def _beside(like: str, path: Path) -> Path:
    return (path.parent / like).resolve() if like.endswith(_FILE) else _path(like)


def _ratios(figures: Mapping[str, Any], base: Mapping[str, Any], path: Path) -> dict[str, float]:
    try:
        new, old = derived(figures), derived(base)
    except (KeyError, ZeroDivisionError) as error:
        raise InvalidInputError(f"the device file {path} lacks a figure: {error}") from error
    return {name: value / old[name] if value != old[name] else 1.0 for name, value in new.items() if old.get(name)}


def _scaled(cls: type[Any], table: Mapping[str, Any], ratios: Mapping[str, float]) -> dict[str, Any]:
    """The numbers of a record, those that grow with a figure times its ratio; equal figures change no bit."""
    found = dict(table)
    for name, hint in get_type_hints(cls, include_extras=True).items():
        value = found.get(name)
        figure = next((one.figure for one in getattr(hint, "__metadata__", ()) if isinstance(one, GrowsWith)), None)
        if _is_table(value) and is_dataclass(hint):
            found[name] = _scaled(cast("type[Any]", hint), value, ratios)
        elif isinstance(value, int | float) and figure is not None and ratios.get(figure, 1.0) != 1.0:
            found[name] = value * ratios[figure]
    return found


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(base)
    for name, value in own.items():
        inner = found.get(name)
        found[name] = _merged(inner, value) if _is_table(value) and _is_table(inner) else value
    return found


def _record(cls: type[Any], table: Mapping[str, Any], where: str) -> Any:
    """The record of a table; raises `InvalidInputError` for what is missing, unknown or no number."""
    hints, known = get_type_hints(cls), {one.name: one for one in fields(cls)}
    for name in table.keys() - known.keys():
        raise InvalidInputError(f"the device file {where}: {name!r} is unknown: expected {', '.join(known)}")
    missing = [name for name, one in known.items() if name not in table and one.default is MISSING]
    if missing:
        raise InvalidInputError(f"the device file {where} does not say {', '.join(missing)}")
    return cls(**{name: _value(hints[name], value, f"{where}: {name}") for name, value in table.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    if is_dataclass(hint):
        return _record(cast("type[Any]", hint), _table_at(value, where), where)
    if get_origin(hint) is Mapping:
        shapes = _table_at(value, where)
        return {name: _value(get_args(hint)[1], one, f"{where}.{name}") for name, one in shapes.items()}
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], one, where) for one in _list_at(value, where))
    allowed = str if hint is str else int if hint is int else (int, float)
    if not isinstance(value, allowed) or isinstance(value, bool):
        raise InvalidInputError(f"the device file {where}: {value!r} is no {getattr(hint, '__name__', hint)}")
    return value


def _is_table(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _table_at(value: object, where: str) -> dict[str, Any]:
    if not _is_table(value):
        raise InvalidInputError(f"the device file {where}: expected a table")
    return value


def _list_at(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise InvalidInputError(f"the device file {where}: expected a list")
    return cast("list[object]", value)


__all__ = ["Device", "cpu_device", "device_names", "gpu_device", "read_device", "table_of"]
