"""Layouts of spins in memory, a module or folder each: start, snapshot, reading, copies, counting on each device."""
