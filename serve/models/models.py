"""All models of a server, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlirt.errors import InvalidInputError
from mlirt.serve.models.model import Model


class UnknownModelError(InvalidInputError):
    """There is no model of this name or version."""


class Models:
    """What a server answers for."""

    def __init__(self, models: Iterable[Model]) -> None:
        self._models = {model.name: model for model in models}
        self.is_closing = False
        """Whether the server still takes requests, which health checks are told."""

    def __iter__(self) -> Iterator[Model]:
        return iter(self._models.values())

    def get(self, name: str, version: str = "") -> Model:
        """The model; `UnknownModelError` for another name or version."""
        model = self._models.get(name)
        if model is None:
            raise UnknownModelError(f"there is no model {name[:80]!r}; expected one of {', '.join(self._models)}")
        if version and version != model.version:
            raise UnknownModelError(f"model {name!r} has no version {version[:80]!r}; expected {model.version}")
        return model

    @property
    def are_ready(self) -> bool:
        """Whether all of them answer."""
        return not self.is_closing and all(model.is_ready for model in self)

    def close(self) -> None:
        """Answer what waits, then end."""
        self.is_closing = True
        for model in self:
            model.unload()
