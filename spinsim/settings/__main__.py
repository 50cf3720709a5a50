"""``python -m spinsim.settings > docs/settings.md``: the page that has every setting."""

from __future__ import annotations

import sys

from spinsim.jobs import all_jobs
from spinsim.settings.document import page

if __name__ == "__main__":
    sys.stdout.write(page(job.config for job in all_jobs()))
