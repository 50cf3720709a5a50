"""Counting, correlations of copies, and measurements on their way from a device to the caller."""
