"""What the computer gives: compiling, threads, memory and the disk."""
