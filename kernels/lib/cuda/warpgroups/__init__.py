"""Products in tiles that the device copies to shared memory by itself and that warpgroups multiply (Hopper GPUs)."""
