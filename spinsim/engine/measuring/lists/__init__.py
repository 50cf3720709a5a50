"""Copies compared by lists of sites and bonds, whatever the lattice or graph."""
