"""Counting, correlations of copies, and the transfer of measurements from a device to the caller."""
