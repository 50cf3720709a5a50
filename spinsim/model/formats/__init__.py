"""Files of problems, a module for each format: how it is told apart, read into a ``Quadratic``, and written."""
