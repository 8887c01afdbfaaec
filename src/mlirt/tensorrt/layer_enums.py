"""The enumerations that layers of a network take: kinds, modes, directions (TensorRT 8.5's names and numbers,
and those of 8.6 where that is told).
"""

from mlirt.tensorrt.enumeration import Enumeration
from mlirt.tensorrt.reported_version import reports_at_least


class LayerType(Enumeration):
    """What `ILayer.type` says of a layer."""

    CONVOLUTION = 0
    FULLY_CONNECTED = 1
    ACTIVATION = 2
    POOLING = 3
    LRN = 4
    SCALE = 5
    SOFTMAX = 6
    DECONVOLUTION = 7
    CONCATENATION = 8
    ELEMENTWISE = 9
    PLUGIN = 10
    UNARY = 11
    PADDING = 12
    SHUFFLE = 13
    REDUCE = 14
    TOPK = 15
    GATHER = 16
    MATRIX_MULTIPLY = 17
    RAGGED_SOFTMAX = 18
    CONSTANT = 19
    RNN_V2 = 20
    IDENTITY = 21
    PLUGIN_V2 = 22
    SLICE = 23
    SHAPE = 24
    PARAMETRIC_RELU = 25
    RESIZE = 26
    TRIP_LIMIT = 27
    RECURRENCE = 28
    ITERATOR = 29
    LOOP_OUTPUT = 30
    SELECT = 31
    FILL = 32
    QUANTIZE = 33
    DEQUANTIZE = 34
    CONDITION = 35
    CONDITIONAL_INPUT = 36
    CONDITIONAL_OUTPUT = 37
    SCATTER = 38
    EINSUM = 39
    ASSERTION = 40
    ONE_HOT = 41
    NON_ZERO = 42
    GRID_SAMPLE = 43
    NMS = 44
    if reports_at_least(8, 6):
        REVERSE_SEQUENCE = 45
        NORMALIZATION = 46
        CAST = 47


class ActivationType(Enumeration):
    """The formula of an activation layer."""

    RELU = 0
    SIGMOID = 1
    TANH = 2
    LEAKY_RELU = 3
    ELU = 4
    SELU = 5
    SOFTSIGN = 6
    SOFTPLUS = 7
    CLIP = 8
    HARD_SIGMOID = 9
    SCALED_TANH = 10
    THRESHOLDED_RELU = 11


class ElementWiseOperation(Enumeration):
    """What an elementwise layer does with two numbers."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    SUB = 4
    DIV = 5
    POW = 6
    FLOOR_DIV = 7
    AND = 8
    OR = 9
    XOR = 10
    EQUAL = 11
    GREATER = 12
    LESS = 13


class UnaryOperation(Enumeration):
    """What a unary layer does with a number."""

    EXP = 0
    LOG = 1
    SQRT = 2
    RECIP = 3
    ABS = 4
    NEG = 5
    SIN = 6
    COS = 7
    TAN = 8
    SINH = 9
    COSH = 10
    ASIN = 11
    ACOS = 12
    ATAN = 13
    ASINH = 14
    ACOSH = 15
    ATANH = 16
    CEIL = 17
    FLOOR = 18
    ERF = 19
    NOT = 20
    SIGN = 21
    ROUND = 22
    if reports_at_least(8, 6):
        ISINF = 23


class PoolingType(Enumeration):
    """What becomes of a window."""

    MAX = 0
    AVERAGE = 1
    MAX_AVERAGE_BLEND = 2


class PaddingMode(Enumeration):
    """How pads and lengths of windows are computed."""

    EXPLICIT_ROUND_DOWN = 0
    EXPLICIT_ROUND_UP = 1
    SAME_UPPER = 2
    SAME_LOWER = 3
    CAFFE_ROUND_DOWN = 4
    CAFFE_ROUND_UP = 5


class ScaleMode(Enumeration):
    """How many coefficients a scale layer has: one, one a channel, one an element."""

    UNIFORM = 0
    CHANNEL = 1
    ELEMENTWISE = 2


class ReduceOperation(Enumeration):
    """How elements are combined."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVG = 4


class TopKOperation(Enumeration):
    """The largest elements or the smallest."""

    MAX = 0
    MIN = 1


class MatrixOperation(Enumeration):
    """What is done with an operand of a product before it."""

    NONE = 0
    TRANSPOSE = 1
    VECTOR = 2


class GatherMode(Enumeration):
    """What indices mean: slices of an axis, single elements, or coordinates."""

    DEFAULT = 0
    ELEMENT = 1
    ND = 2


class ScatterMode(Enumeration):
    """What indices mean: single elements of an axis, or coordinates."""

    ELEMENT = 0
    ND = 1


class InterpolationMode(Enumeration):
    """How many neighbours a new sample is computed from; `ResizeMode` is another name of this class."""

    NEAREST = 0
    LINEAR = 1
    CUBIC = 2


class ResizeCoordinateTransformation(Enumeration):
    """Where a new sample lies among the old ones."""

    ALIGN_CORNERS = 0
    ASYMMETRIC = 1
    HALF_PIXEL = 2


class ResizeSelector(Enumeration):
    """Which old sample a single new one is."""

    FORMULA = 0
    UPPER = 1


class ResizeRoundMode(Enumeration):
    """How a position becomes the index of the nearest sample."""

    HALF_UP = 0
    HALF_DOWN = 1
    FLOOR = 2
    CEIL = 3


class SampleMode(Enumeration):
    """What lies outside of a tensor; `SliceMode` is another name of this class."""

    STRICT_BOUNDS = 0
    DEFAULT = 0
    WRAP = 1
    CLAMP = 2
    FILL = 3
    REFLECT = 4


class FillOperation(Enumeration):
    """What a tensor is filled with."""

    LINSPACE = 0
    RANDOM_UNIFORM = 1
    RANDOM_NORMAL = 2


class BoundingBoxFormat(Enumeration):
    """What the four numbers of a box are."""

    CORNER_PAIRS = 0
    CENTER_SIZES = 1


class TripLimit(Enumeration):
    """What ends a loop: a trip count, or a condition."""

    COUNT = 0
    WHILE = 1


class LoopOutput(Enumeration):
    """What is seen of a loop: its last value, or the values of all iterations in order or in reverse."""

    LAST_VALUE = 0
    CONCATENATE = 1
    REVERSE = 2


class RNNOperation(Enumeration):
    """The cell of a recurrent layer."""

    RELU = 0
    TANH = 1
    LSTM = 2
    GRU = 3


class RNNDirection(Enumeration):
    """Forward alone, or forward and backward."""

    UNIDIRECTION = 0
    BIDIRECTION = 1


class RNNInputMode(Enumeration):
    """Whether the first layer multiplies its input with weights."""

    LINEAR = 0
    SKIP = 1


class RNNGateType(Enumeration):
    """The gates of a recurrent layer."""

    INPUT = 0
    OUTPUT = 1
    FORGET = 2
    UPDATE = 3
    RESET = 4
    CELL = 5
    HIDDEN = 6
