"""Which way each fused op is lowered: estimated, measured on the device, or read from a cache of measurements."""
