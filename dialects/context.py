"""The context of a compilation: xDSL's, with the weights beside the IR."""

from xdsl.context import Context

from mlirt.dialects.weights import WeightStore


class RtContext(Context):
    """An xDSL context that also holds the arrays that `#trt.weights` attributes name."""

    def __init__(self, allow_unregistered: bool = False):
        super().__init__(allow_unregistered=allow_unregistered)
        self.weights = WeightStore()


def weights_of(ctx: Context) -> WeightStore:
    """The store of a context; an empty one for a context that is not ours."""
    return ctx.weights if isinstance(ctx, RtContext) else WeightStore()
