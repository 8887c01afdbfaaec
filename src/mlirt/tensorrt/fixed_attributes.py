"""Objects that have the attributes they were made with: a misspelt setting is an error, not one that gets lost."""

from __future__ import annotations

from difflib import get_close_matches


class FixedAttributes:
    """Refuses public attributes that neither its class nor `__init__` made, as TensorRT's objects do.

    Classes of the user's own that derive from one may have any.
    """

    _are_fixed = False

    def fix_attributes(self) -> None:
        """There are no others from now on: the last line of `__init__`."""
        self._are_fixed = True

    def __setattr__(self, name: str, value: object) -> None:
        if self._are_fixed and not name.startswith("_") and not self._has(name):
            raise AttributeError(self.about_unknown(name))
        super().__setattr__(name, value)

    def _has(self, name: str) -> bool:
        return name in vars(self) or hasattr(type(self), name) or not type(self).__module__.startswith("mlirt.")

    def about_unknown(self, name: str) -> str:
        """What to say about an attribute that there is not."""
        close = get_close_matches(name, [one for one in dir(self) if not one.startswith("_")], 1)
        return f"{type(self).__name__!r} object has no attribute {name!r}" + "".join(
            f"; did you mean {one!r}?" for one in close
        )
