"""Optima: exact lowest states of problems that allow them, and exact reductions of all others."""
