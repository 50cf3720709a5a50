"""Settings: each is stated once, as metadata of a dataclass field; flags, files and documentation follow from there."""
