"""Steps that the packed updates share: the order of sites, flip classes, random planes, tables of lanes."""
