"""What is simulated: lattices, graphs, couplings, fields, instance files."""
