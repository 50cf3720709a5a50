"""The replica-packed update: a word holds one site of 64 replicas, for couplings of one magnitude on any graph."""
