"""The update of an energy of two terms: replica-packed words, flip classes by the unsatisfied bonds of each term."""
