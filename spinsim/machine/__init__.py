"""Resources of the computer: compilation, threads, memory and the disk."""
