"""The errors that a user can meet; each message names the layer, what was expected, what came and what to do."""


class MlirtError(Exception):
    """Base of every error that mlirt raises on purpose; tools print it as one line and exit with 1."""


class UnsupportedError(MlirtError, NotImplementedError):
    """The network uses something that this version cannot compile."""


class InvalidModelError(MlirtError, ValueError):
    """The model is damaged, or contradicts the specification of its format."""


class InvalidInputError(MlirtError, ValueError):
    """An input of a run is missing, or has the wrong name, shape or data type."""


class PlanError(MlirtError, ValueError):
    """A plan file is damaged, was made for another version, or for a device that is not here."""


class CompileError(MlirtError):
    """A pass or a compiler back end failed on a network that should have been compiled."""


class PluginError(MlirtError):
    """A plugin has no creator here, or its own code failed; the cause is its exception."""
