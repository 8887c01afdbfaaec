"""`mlirt.compile`: a trained network in, an engine for one target out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Unpack

from mlirt.builder.config.build_config import BuildConfig
from mlirt.builder.model_engine import build_engine
from mlirt.builder.model_kinds import is_torch_model
from mlirt.dialects.pass_plugins import using
from mlirt.errors import InvalidInputError, reports_shortage
from mlirt.runtime.garbage_collection import rare_collections

if TYPE_CHECKING:
    from mlirt.builder.config.keywords import Keywords
    from mlirt.builder.model_kinds import SourceNetwork
    from mlirt.builder.model_network import ModelSource, TorchModel
    from mlirt.builder.profiles import Profiles
    from mlirt.runtime.engine_interface import EngineLike

# The compiler is imported where there is something to build; whoever lacks it is told before.
if find_spec("xdsl") is None:
    raise ModuleNotFoundError("No module named 'xdsl'", name="xdsl")


@reports_shortage("the build")
@rare_collections()
def compile(
    model: ModelSource | SourceNetwork | TorchModel,
    inputs_or_target: str | Sequence[Any] | None = None,
    precision: str | None = None,
    profiles: Profiles | None = None,
    *,
    config: BuildConfig | None = None,
    example_keywords: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    **settings: Unpack[Keywords],
) -> EngineLike:
    """Build an engine for an ONNX model (a path, bytes or a ModelProto), a PyTorch module or program, or IR text.

    IR may be of any phase; it is in a file whose name ends in `.mlir`.

    `mlirt.compile(module, (x,))` exports the module for inputs like these first; `mlirt.compile(program)` takes what
    `torch.export.export` gives. Their engines are called like the module: `engine(x)`. One in half precision is
    computed in it, unless a precision is given.

    inputs_or_target: the example inputs of a PyTorch module; of other models the target.
    config: how to build and run it, a `mlirt.BuildConfig`. Its settings are keywords as well, which go before it:
        `mlirt.compile(model, "cpu", profiles={"x": [(1, 3), (4, 3), (8, 3)]}, threads=2)`. docs/build-config.md lists
        them with their units and defaults.
    example_keywords, dynamic_shapes: of a PyTorch module, as `torch.export.export` has them. A `torch.export.Dim`
        becomes a dimension of its name.

    An engine for "cuda" can be built and saved where there is no GPU; running it raises `PlanError`.
    Raises `InvalidModelError` for a damaged model, `UnsupportedError` for one that uses what is not supported yet,
    `InvalidInputError` for settings that do not fit, which it names, `CompileError` where a pass or a back end fails.
    """
    given: dict[str, Any] = dict(settings)
    examples = _examples_and_target(inputs_or_target, given)
    given |= {name: one for name, one in (("precision", precision), ("profiles", profiles)) if one is not None}
    chosen = BuildConfig.of(config, given)
    with using(chosen.plugins):
        if is_torch_model(model):
            from mlirt.builder.from_torch.compile_module import compile_module, own_precision, weights_of

            if config is None and precision is None and (own := own_precision(weights_of(model))) is not None:
                chosen = chosen.replace(precision=own)
            return compile_module(model, examples, example_keywords, dynamic_shapes, chosen)
        if examples is not None:
            raise InvalidInputError("example inputs are for PyTorch modules; a target is a name")
        if example_keywords is not None or dynamic_shapes is not None:
            raise InvalidInputError("example_keywords and dynamic_shapes are for PyTorch modules")
        return build_engine(model, chosen)


def _examples_and_target(given: str | Sequence[Any] | None, settings: dict[str, Any]) -> Sequence[Any] | None:
    """The example inputs, if there are any; a target in their place goes to the settings."""
    if not isinstance(given, str):
        return given
    if settings.get("target") is not None:
        raise InvalidInputError(f"the target is given twice: {given!r} and {settings['target']!r}")
    settings["target"] = given
    return None
