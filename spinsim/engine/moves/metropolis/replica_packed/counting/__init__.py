"""Spins +1 and unsatisfied bonds of replica-packed words."""
