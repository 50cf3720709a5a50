"""Metropolis updates of single spins, a module or folder for each way in which spins lie.

All draw from the stream ``UPDATE`` of the random counter. Replica-packed words have kernels for up to seven bonds a
site, for a uniform field or two terms (the anisotropic update), and for any degrees; site-packed words have those of
periodic lattices. They share flip classes (classes.py) and steps (steps.py). Unpacked spins take any couplings, and
``dense`` keeps their local fields. ``by_replica`` makes the trajectories of either for few replicas.
"""
