"""What xDSL's own tools load: with mlirt installed, stock `xdsl-opt` knows our dialects and passes."""

from functools import partial

from xdsl.dialects import get_all_dialects
from xdsl.transforms import get_all_passes
from xdsl.universe import Universe

from mlirt.dialects.registry import factories
from mlirt.passes import registry

# A name that xDSL has as well stays xDSL's there: two universes may not define the same one.
MLIRT_UNIVERSE = Universe(
    all_dialects={name: factory for name, factory in factories().items() if name not in get_all_dialects()},
    all_passes={name: partial(registry.load, name) for name in registry.pass_names() if name not in get_all_passes()},
)
