"""Houdayer moves: copies of equal temperature exchange clusters, which changes no sum of their energies."""
