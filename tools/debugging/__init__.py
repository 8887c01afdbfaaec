"""What rt-debug does: networks that compute something wrong, followed to the pass, the tensor and the kernel."""
