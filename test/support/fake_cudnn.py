"""cuDNN without a device: it writes down what it is told, and proposes what a test says."""

from __future__ import annotations

from typing import Any

from mlirt.runtime.cudnn_descriptors import Field, Kind


class Entry:
    """A function of the library."""

    def __init__(self, library: FakeLibrary, name: str) -> None:
        self.library, self.name = library, name
        self.argtypes: list[Any] = []
        self.restype: Any = None

    def __call__(self, *arguments: Any) -> Any:
        for kind, argument in zip(self.argtypes, arguments, strict=True):
            kind.from_param(argument)
        return self.library.answer(self.name, arguments)


class FakeLibrary:
    """Numbers descriptors, keeps what they are told, proposes engines with these notes and this workspace."""

    def __init__(self, notes: list[list[int]], workspace: int = 0, refused: str = "") -> None:
        self.notes, self.workspace, self.refused = notes, workspace, refused
        self.kinds: dict[int, Kind] = {}
        self.fields: dict[int, dict[Field, list[Any]]] = {}
        self.engines: dict[int, list[int]] = {}
        self.given_back: list[int] = []
        self.run: list[tuple[int, int]] = []

    def __getattr__(self, name: str) -> Entry:
        entry = Entry(self, name)
        setattr(self, name, entry)
        return entry

    def answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name == self.refused:
            return 3000
        match name.removeprefix("cudnn").removeprefix("Backend"):
            case "GetVersion":
                return 91900
            case "GetErrorString":
                return b"NOT_SUPPORTED"
            case "CreateDescriptor":
                number = len(self.kinds) + 1
                self.kinds[number], self.fields[number] = Kind(arguments[0]), {}
                arguments[1]._obj.value = number
            case "DestroyDescriptor":
                self.given_back.append(arguments[0].value)
            case "SetAttribute":
                self.fields[arguments[0].value][Field(arguments[1])] = list(arguments[4])
            case "GetAttribute":
                return self.told(arguments[0].value, Field(arguments[1]), arguments)
            case "Execute":
                self.run.append((arguments[1].value, arguments[2].value))
            case _:
                pass
        return 0

    def told(self, number: int, field: Field, arguments: tuple[Any, ...]) -> int:
        count, found = arguments[4]._obj, arguments[5]
        if field is Field.HEURISTICS_RESULTS:
            count.value = len(self.notes)
            self.engines |= dict(zip(found, self.notes, strict=False))
        elif field is Field.CONFIG_ENGINE:
            count.value = 1
            self.engines[found[0]] = self.engines[number]
        elif field is Field.ENGINE_NOTES:
            count.value = len(self.engines[number])
            found[: count.value] = self.engines[number]
        else:
            count.value, found[0] = 1, self.workspace
        return 0

    def of_kind(self, kind: Kind) -> list[dict[Field, list[Any]]]:
        return [self.fields[number] for number, one in self.kinds.items() if one is kind]


__all__ = ["FakeLibrary"]
