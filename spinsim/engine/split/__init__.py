"""Sharing of samples among several devices: the share of each device, and the engine that combines their engines."""
