"""The update of dense models: local fields are kept, and a flip adds a row of couplings to them."""
