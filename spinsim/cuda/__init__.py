"""GPUs: finding them, compiling kernels, launching kernels, records that kernels read."""
