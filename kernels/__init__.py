"""CUDA C++ sources, installed as the data package ``spinsim.kernels``."""
