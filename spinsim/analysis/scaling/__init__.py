"""Finite-size scaling of runs of several sizes, whose errors are correlated along the ladder.

curves.py has the averages of each size with bootstrap resamples; collapse.py fits all sizes to one curve; quotients.py
compares pairs of sizes; peaks.py finds largest values and slopes; limits.py fits what these found against L; report.py
prints all of them.
"""
