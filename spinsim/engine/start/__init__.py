"""Initial configurations: given ones, and random ones as each update draws them."""
