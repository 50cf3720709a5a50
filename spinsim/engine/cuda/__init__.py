"""The CUDA engine: the kernels of ``spinsim.kernels`` through CuPy, bit for bit the CPU engine's results."""
