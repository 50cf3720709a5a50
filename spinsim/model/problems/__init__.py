"""Quadratic problems of spins or binary variables, in the forms in which other programs give and take them."""
