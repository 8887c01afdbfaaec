"""Which execution context uses which optimization profile (tensorrt-features.md#12.7, 13.9)."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from mlirt.runtime.api.execution_context import IExecutionContext


class ProfileUsers:
    """The live contexts of an engine: each profile of dynamic inputs has one of them at most."""

    def __init__(self, *, is_dynamic: bool) -> None:
        self._is_dynamic = is_dynamic
        self._profiles = WeakKeyDictionary["IExecutionContext", int]()
        self._lock = Lock()

    def claim(self, context: IExecutionContext, profile: int) -> bool:
        """Give a context a profile instead of the one that it has; False where another context has it."""
        with self._lock:
            taken = [used for user, used in self._profiles.items() if user is not context]
            if self._is_dynamic and profile in taken:
                return False
            self._profiles[context] = profile
            return True
