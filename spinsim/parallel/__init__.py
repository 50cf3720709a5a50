"""Processes and devices that share the work of one run: MPI ranks times their devices.

One process, rank 0, carries out the command: it alone reads and writes files, prints, and decides when to save and to
stop. All others *serve*: objects such as engines live there, and rank 0 has functions carried out on them.
"""
