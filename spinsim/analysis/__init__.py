"""Statistics: numbers with error bars, and figures, from measurements."""
