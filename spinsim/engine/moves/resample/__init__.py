"""Resampling of populations: copies of configurations that take the place of others within a sample.

Parents are chosen by one uniform number for each population, which the caller draws. Layouts copy on their own device:
replica-packed words have kernels for it, others copy rows or columns.
"""
