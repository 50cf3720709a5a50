"""What is counted of models of space and time alone: slices, correlations in time, products of neighbours in space."""
