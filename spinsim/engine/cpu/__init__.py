"""The CPU engine: Numba kernels that release the interpreter lock, one task a thread."""
