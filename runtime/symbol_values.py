"""What each symbol of a plan stands for, by the shapes of the inputs, and whether these are as the layers need them."""

from collections.abc import Mapping, Sequence

from mlirt.errors import InvalidInputError, PlanError, UnmetConditionError
from mlirt.runtime.expressions import ExpressionError, evaluate, to_text
from mlirt.runtime.manifest import Manifest, Tensor
from mlirt.runtime.profile_ranges import check_profiles
from mlirt.runtime.size_guesses import refined

Shape = tuple[int, ...]

NO_SIZES: Mapping[str, int] = {}
# What a size that only the run tells is taken for at first.
GUESS = 1
# Into so many parts a launch is cut by up to 32 threads; more threads have one each.
MAX_PARTS = 32


def bind_symbols(manifest: Manifest, shapes: Sequence[Shape], sizes: Mapping[str, int]) -> dict[str, int]:
    """Give each symbol its value from the shapes of the inputs, and check all dimensions and what layers need."""
    values = symbol_values(manifest, shapes, sizes, MAX_PARTS)
    check_requirements(manifest, shapes, values)
    return values


def symbol_values(manifest: Manifest, shapes: Sequence[Shape], sizes: Mapping[str, int], parts: int) -> dict[str, int]:
    """Give each symbol its value from the shapes of the inputs, and check every other dimension against its formula."""
    for tensor, shape in zip(manifest.given_inputs, shapes, strict=True):
        if len(shape) != len(tensor.shape):
            raise _wrong_shape(tensor, shape, f"expected {len(tensor.shape)} dimensions")
    values = {symbol.name: shapes[symbol.input][symbol.axis] for symbol in manifest.symbols}
    values.update((name, sizes.get(name, GUESS)) for name in manifest.sizes)
    if manifest.parts is not None:
        values[manifest.parts] = parts
    for tensor, shape in zip(manifest.given_inputs, shapes, strict=True):
        for axis, (dim, length) in enumerate(zip(tensor.shape, shape, strict=True)):
            try:
                expected = evaluate(dim, values)
            except ExpressionError as error:
                raise _wrong_shape(tensor, shape, f"dimension {axis} has no value: {error}") from error
            if expected != length:
                named = "" if isinstance(dim, int) else f" (= {to_text(dim)})"
                layer = tensor.needed_by[axis] if tensor.needed_by else ""
                if "{left}" in layer and "{right}" in layer:
                    said = layer.replace("{left}", str(expected)).replace("{right}", str(length))
                    raise _unmet(said, manifest, shapes)
                reason = f", as layer {layer} needs it" if layer else ""
                raise _wrong_shape(tensor, shape, f"dimension {axis} must be {expected}{named}, not {length}{reason}")
    if manifest.profiles:
        check_profiles(manifest.profiles, dict(zip((one.name for one in manifest.given_inputs), shapes, strict=True)))
    return values


def refined_sizes(
    manifest: Manifest, shapes: Sequence[Shape], sizes: Mapping[str, int], known: str | None = None
) -> dict[str, int]:
    """What the run's own sizes are best taken for, where the run has told what the symbol `known` is."""
    values = refined(manifest.program, bind_symbols(manifest, shapes, sizes), known)
    return {name: values[name] for name in manifest.sizes}


def _wrong_shape(tensor: Tensor, shape: Shape, fault: str) -> InvalidInputError:
    expected = ", ".join(to_text(dim) for dim in tensor.shape)
    return InvalidInputError(
        f"input {tensor.name!r}: expected shape ({expected}), got {shape}: {fault}; "
        "reshape the array, or build the engine for this shape"
    )


def check_requirements(manifest: Manifest, shapes: Sequence[Shape], values: Mapping[str, int]) -> None:
    for one in manifest.requirements:
        try:
            violation = one.violation(values)
        except ExpressionError as error:
            given = listed(manifest, shapes)
            raise PlanError(f"layer {one.layer} has no meaning for the shapes {given}: {error}; give others") from error
        if violation is not None:
            raise _unmet(violation, manifest, shapes)


def _unmet(violation: str, manifest: Manifest, shapes: Sequence[Shape]) -> UnmetConditionError:
    return UnmetConditionError(
        f"{violation}, for the shapes {listed(manifest, shapes)}; give inputs that fit, or build the engine for these "
        "shapes"
    )


def listed(manifest: Manifest, shapes: Sequence[Shape]) -> str:
    return ", ".join(f"{tensor.name}={shape}" for tensor, shape in zip(manifest.given_inputs, shapes, strict=True))
