"""Moves: algorithms that change replicas, one folder or module each."""
