"""The enumerations of running an engine: where tensors lie and how (TensorRT 8.5's names and numbers)."""

from mlirt.tensorrt.enumeration import Enumeration


class TensorIOMode(Enumeration):
    """Whether a name is an input or an output of an engine."""

    NONE = 0
    INPUT = 1
    OUTPUT = 2


class TensorLocation(Enumeration):
    """The memory of a tensor."""

    DEVICE = 0
    HOST = 1


class TensorFormat(Enumeration):
    """How the elements of a tensor lie in memory."""

    LINEAR = 0
    CHW2 = 1
    HWC8 = 2
    CHW4 = 3
    CHW16 = 4
    CHW32 = 5
    DHWC8 = 6
    CDHW32 = 7
    HWC = 8
    DLA_LINEAR = 9
    DLA_HWC4 = 10
    HWC16 = 11


class TempfileControlFlag(Enumeration):
    """Which files a runtime may make, of which this one makes none."""

    ALLOW_IN_MEMORY_FILES = 0
    ALLOW_TEMPORARY_FILES = 1


class LayerInformationFormat(Enumeration):
    """How an inspector writes."""

    ONELINE = 0
    JSON = 1
