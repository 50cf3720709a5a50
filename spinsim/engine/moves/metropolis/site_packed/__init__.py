"""Site-packed update: a word holds 64 sites of one replica, for single lattices and few replicas."""
