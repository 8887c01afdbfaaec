"""How each layer of `trt` becomes fused ops: one file per family, each with a table `CONVERSIONS` by op class."""
