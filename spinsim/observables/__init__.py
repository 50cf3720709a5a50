"""Observables of runs in equilibrium: one record each (``table.py``), from which files, tables and figures follow."""
