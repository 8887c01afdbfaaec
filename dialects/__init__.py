"""What a network, a launch, a kernel and a plan can say: the dialects and the contract of an op."""
