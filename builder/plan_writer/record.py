"""A JSON object with some fields of one of the runtime's records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

from mlirt.dialects.symbolic_text import to_json
from mlirt.runtime.record_schema import written

Record: TypeAlias = "dict[str, object]"
"""As JSON has it."""
Fields: TypeAlias = "dict[str, Any]"
"""Values of fields by their names."""


def record(of: type[Any], role: str = "", later: Collection[str] = (), /, **values: Any) -> Record:
    """`record(Buffer, kind="input", size=bytes)`; a `TypeError` for fields that there are not, or that lack.

    Those that come `later` may lack.
    """
    return written(of, role, later, formula=to_json, **values)
