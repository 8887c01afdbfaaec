"""The matrix unit whose accumulators lie in tensor memory."""

from __future__ import annotations

from mlirt.dialects.gpu_architectures import TENSOR_MEMORY
from mlirt.kernels.lib.cuda.tensor_memory.tensor_product import TensorProduct
from mlirt.kernels.lib.cuda.tensor_memory.tensor_tile import TensorTile, tensor_tiles_for
from mlirt.kernels.lib.cuda.warpgroups.group_unit import GroupUnit

BLACKWELL = GroupUnit(TENSOR_MEMORY, tensor_tiles_for, TensorTile.named, TensorProduct)
