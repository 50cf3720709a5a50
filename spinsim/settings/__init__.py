"""Settings: each is declared once, as metadata of a dataclass field; flags, files and documentation derive from it."""
