"""Fortuin-Kasteleyn clusters: satisfied bonds are opened at random, and spins joined by open bonds flip together."""
