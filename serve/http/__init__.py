"""The Open Inference Protocol over HTTP, with health, metrics and reloads. Needs the packages of `mlirt[serve]`."""
