"""Parsing and checking of numbers and texts that users give."""
