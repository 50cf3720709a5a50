"""Moves: what changes replicas, a folder for each algorithm."""
