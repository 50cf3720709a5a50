"""Configurations that take the place of others within a sample: what engines do when a population is resampled."""
