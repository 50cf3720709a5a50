"""Few replicas, one after the other, with local fields that are kept: a whole schedule in one compiled call."""
