"""Replicas one after the other with local fields that are kept: whole schedules of few replicas in one compiled call."""
