"""Rounds of sweeps and exchanges in one call or launch: on a CPU, and in shared or global memory of a GPU."""
