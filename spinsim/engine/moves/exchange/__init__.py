"""The ladder of temperatures of parallel tempering, and the exchange of neighbours on every device."""
