"""From measurements to numbers with error bars, and to figures."""
