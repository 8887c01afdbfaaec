"""The `trt` dialect: a network of layers on tensors. One file per op family."""

from mlirt.dialects.folder import dialect_from_folder

Trt = dialect_from_folder("trt", __name__, __path__, ["mlirt.dialects.dims_attr", "mlirt.dialects.weights"])
