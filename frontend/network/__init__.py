"""The network-definition API: TensorRT's names for making a network layer by layer, in the `trt` dialect."""
