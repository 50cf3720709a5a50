"""Samples shared out to several devices: which gets which, and the engine that is put together from theirs."""
