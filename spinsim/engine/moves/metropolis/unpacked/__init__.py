"""The unpacked update: a byte for each spin of each replica, for any couplings and fields."""
