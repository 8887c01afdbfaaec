"""The Open Inference Protocol over gRPC. Needs the packages of `mlirt[grpc]`."""
