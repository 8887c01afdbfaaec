"""Second names: element types as NumPy spells them, and enumerations by what they are used for."""

from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.layer_enums import InterpolationMode, SampleMode

float32 = DataType.FLOAT
float16 = DataType.HALF
int8 = DataType.INT8
int32 = DataType.INT32
bool = DataType.BOOL
uint8 = DataType.UINT8
int64 = DataType.INT64
bfloat16 = DataType.BF16
fp8 = DataType.FP8
ResizeMode = InterpolationMode
SliceMode = SampleMode
