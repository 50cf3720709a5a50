"""Lattices: unit cells that repeat, and what follows of sites and bonds."""
