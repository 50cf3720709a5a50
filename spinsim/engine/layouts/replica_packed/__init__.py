"""A word holds one site of 64 replicas: ``state[sample, block, site, half]``, a block being two words, 128 replicas."""
