"""Metropolis updates of single spins, one module or folder for each layout of the spins.

All draw from the stream ``UPDATE`` of the random counter. Replica-packed words have kernels for up to seven bonds per
site, for a uniform field or two terms (the anisotropic update), and for any degrees. Site-packed words have kernels for
periodic lattices. Both share flip classes (classes.py) and steps (steps.py). Unpacked spins allow any couplings, and
``dense`` also stores their local fields. ``by_replica`` computes the trajectories of either update for few replicas.
"""
