"""CUDA kernels without a GPU: their source compiled by g++ behind ``device.h``, under a stand-in for CuPy."""
