"""GPUs: finding them, compiling kernels, launching them, records that they read."""
