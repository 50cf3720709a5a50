"""How spins lie: a module or folder for each layout: its start, snapshot, reading, copies, counting on each device."""
