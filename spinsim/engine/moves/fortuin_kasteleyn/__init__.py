"""Fortuin-Kasteleyn clusters: satisfied bonds are open at random, and spins that open bonds join flip together."""
