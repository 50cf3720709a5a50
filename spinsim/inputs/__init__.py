"""Numbers and texts as users give them."""
