"""Rounds of sweeps and exchanges of models with any couplings, many in one call or launch: on a CPU and on a GPU."""
