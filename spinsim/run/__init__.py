"""Common ground of the runs of all jobs: plans, the loop that carries them out, their files, searches, progress."""
