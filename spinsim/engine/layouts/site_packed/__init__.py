"""A word holds 64 sites of one replica: of one row and colour, ``words[replica, colour, row, group of 128, half]``.

Signs of couplings lie like spins, and every bond stands twice, once for the sites of each colour. The neighbours of a
site stand in slots: 0 and 1 are those at y - 1 and y + 1, 2 the one at the same place of the other colour's row, 3 the
other one along x, 4 and 5 those at z - 1 and z + 1. A site at x = 2 i has x + 1 in slot 2 and x - 1 in slot 3, one at
x = 2 i + 1 the other way round.
"""
