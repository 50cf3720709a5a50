"""Models: lattices, graphs, couplings, fields, instance files."""
