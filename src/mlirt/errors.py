"""The errors that a user can meet; each message names the layer, what was expected, what came and what to do."""


class MlirtError(Exception):
    """Base of every error that mlirt raises on purpose; tools print it as one line and exit with 1."""


class UnsupportedError(MlirtError, NotImplementedError):
    """The network uses something that this version cannot compile."""


class InvalidModelError(MlirtError, ValueError):
    """The model is damaged, or contradicts the specification of its format."""


class InvalidInputError(MlirtError, ValueError):
    """An input of a run is missing, or has the wrong name, shape or data type."""


class UnmetConditionError(InvalidInputError):
    """A run found that a condition of the network does not hold for its inputs: an assertion, or a layer's own."""


class PlanError(MlirtError, ValueError):
    """A plan file is damaged, was made for another version, or for a device that is not here."""


class CompileError(MlirtError):
    """A pass or a compiler back end failed on a network that should have been compiled."""


class PluginError(MlirtError):
    """A plugin has no creator here, or its own code failed; the cause is its exception."""


class MissingPackageError(MlirtError, ImportError):
    """What was asked for needs a package that is not installed, as on a machine that only runs engines."""


class AccuracyWarning(UserWarning):
    """An engine can be built and run, but what it computes is farther from float32 than is good."""


def missing_package(what: str, error: ModuleNotFoundError) -> MissingPackageError:
    """The error for something whose import failed."""
    package = (error.name or "").partition(".")[0]
    return MissingPackageError(
        f"{what} needs the package {package}, which is not installed here: `pip install mlirt` brings the compiler's "
        "packages; engines run without them",
        name=error.name,
    )


def too_little_memory(error: MemoryError) -> str:
    """What to say of it: how much was asked for is not always known."""
    return "there is too little memory for this network" + (f": {error}" if str(error) else "")
