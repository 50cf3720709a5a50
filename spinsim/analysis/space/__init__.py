"""Statistics of saved configurations: correlations in space, overlaps of several copies, chaos and interfaces."""
