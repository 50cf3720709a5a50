"""The common part of the runs of all jobs: plans, the loop that carries them out, files, searches, progress."""
