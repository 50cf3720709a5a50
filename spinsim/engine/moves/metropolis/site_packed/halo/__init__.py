"""What a slab of a site-packed lattice sees beyond its first and its last layer."""
