"""Strict, typed reading of one JSON object; every fault becomes a PlanError that names the field's path."""

from collections.abc import Collection
from typing import cast

from mlirt.errors import PlanError
from mlirt.runtime.expressions import Expression, ExpressionError, parse

REQUIRED = object()


class JsonRecord:
    """A JSON object under validation: typed access by key, refusal of unknown keys."""

    def __init__(self, value: object, where: str, known: Collection[str]) -> None:
        if not isinstance(value, dict):
            raise PlanError(f"plan manifest: {where}: expected an object, got {type(value).__name__}")
        self._fields = cast("dict[str, object]", value)
        self.where = where
        unknown = sorted(set(self._fields) - set(known))
        if unknown:
            raise self.error(unknown[0][:40], "is no field of this object")

    def error(self, key: str, fault: str) -> PlanError:
        """The error for a fault in the field `key`."""
        return PlanError(f"plan manifest: {self.where}.{_printable(key)}: {fault}")

    def get(self, key: str, default: object = REQUIRED) -> object:
        """The raw field, or `default` where it is absent or null."""
        value = self._fields.get(key)
        if value is not None:
            return value
        if default is REQUIRED:
            raise self.error(key, "is missing")
        return default

    def text(self, key: str, default: object = REQUIRED) -> str:
        """A string field."""
        value = self.get(key, default)
        if not isinstance(value, str) or len(value) > 65536:
            raise self.error(key, f"expected a text, got {type(value).__name__}")
        return value

    def optional_text(self, key: str) -> str | None:
        """A string field that may be null."""
        return None if self.get(key, None) is None else self.text(key)

    def integer(self, key: str, low: int, high: int, default: object = REQUIRED) -> int:
        """A whole number in [low, high]."""
        value = self.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.error(key, f"expected a whole number in [{low}, {high}], got {str(value)[:40]}")
        return value

    def index(self, key: str, count: int, what: str) -> int:
        """An index into a list of `count` things."""
        value = self.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < count:
            raise self.error(key, f"{str(value)[:40]} is no index of the {count} {what}")
        return value

    def flag(self, key: str) -> bool:
        """A boolean field, false where absent."""
        value = self.get(key, False)
        if not isinstance(value, bool):
            raise self.error(key, f"expected true or false, got {str(value)[:40]}")
        return value

    def items(self, key: str, limit: int, default: object = REQUIRED) -> list[object]:
        """A list field of at most `limit` items."""
        value = self.get(key, default)
        if not isinstance(value, list):
            raise self.error(key, f"expected a list, got {type(value).__name__}")
        found = cast("list[object]", value)
        if len(found) > limit:
            raise self.error(key, f"has {len(found)} items, more than {limit}")
        return found

    def texts(self, key: str, limit: int, default: object = REQUIRED) -> tuple[str, ...]:
        """A list of strings."""
        items = self.items(key, limit, default)
        found = tuple(item for item in items if isinstance(item, str))
        if len(found) != len(items):
            raise self.error(key, "expected a list of texts")
        return found

    def table(self, key: str, default: object = REQUIRED) -> dict[str, object]:
        """A nested object."""
        value = self.get(key, default)
        if not isinstance(value, dict):
            raise self.error(key, f"expected an object, got {type(value).__name__}")
        return cast("dict[str, object]", value)

    def formula(self, key: str, symbols: Collection[str], default: object = REQUIRED) -> Expression:
        """A shape formula over `symbols`."""
        return self.parse_formula(key, self.get(key, default), symbols)

    def formulas(self, key: str, symbols: Collection[str], limit: int, default: object = REQUIRED) -> list[Expression]:
        """A list of shape formulas."""
        return [self.parse_formula(key, item, symbols) for item in self.items(key, limit, default)]

    def parse_formula(self, key: str, value: object, symbols: Collection[str]) -> Expression:
        """The formula spelt by `value`, which came from the field `key`."""
        try:
            return parse(value, symbols)
        except ExpressionError as error:
            raise self.error(key, str(error)) from error


def _printable(key: str) -> str:
    """A key as it stands in a one-line message: control characters escaped."""
    return key if key.isprintable() else ascii(key)
