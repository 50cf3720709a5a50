"""What the packed updates share: flip classes, random planes, steps of an update, tables of lanes, words on a GPU."""
