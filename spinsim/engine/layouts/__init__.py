"""Layouts of spins in memory, one module each: initial states, snapshots, reading, copies and counting per device."""
