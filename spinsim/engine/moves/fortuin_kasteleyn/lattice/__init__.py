"""Fortuin-Kasteleyn moves of single large lattices, whose words hold 64 sites of one row and colour.

Clusters are those of move.py; random numbers are addressed by groups of 128 sites, as the site-packed layout has them.
Every bond has one end of colour 0, whose slot (layouts/site_packed/) names it: the bond of slot k of the sites of group
g of colour 0 has group k G + g in the counter, G the groups of a colour, a bond to the ghost of colour c k = 2 d + c.
The stream is ``FORTUIN_KASTELEYN``, the block the replica, and bit b of word w belongs to site 32 w + b of the group:

    plane p, p < 64     bit 63 - p of the uniform that closes a bond where it is below the threshold of exp(-2 beta |J|)
    COIN                bit that flips the cluster of a site which is its smallest one, group = c G + g
    OWN                 number of a replica's site and its k, group 0
    SEEDS + p           seeds: sites whose first k planes are all set, group as of coins

The leader of a cluster is the site of the smallest number x + Lx (y + Ly z).
"""
