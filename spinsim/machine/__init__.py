"""Resources of the computer: compiling, threads, memory and the disk."""
