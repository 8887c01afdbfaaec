"""What turns PTX into machine code: nvJitLink for most kernels, an assembler of whole programs for some."""
