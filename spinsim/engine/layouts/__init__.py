"""How spins lie: a folder for each layout, with its start, snapshot, reading, copies and counting on each device."""
