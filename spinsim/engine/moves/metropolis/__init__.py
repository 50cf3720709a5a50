"""Metropolis updates: a folder for each way in which spins are packed, and what the packed ones share."""
