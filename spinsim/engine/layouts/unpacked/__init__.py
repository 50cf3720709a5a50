"""A byte holds a spin of one replica: ``spins[sample, site, replica]``, replicas filled up to whole Philox calls."""
