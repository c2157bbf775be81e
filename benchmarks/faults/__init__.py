"""Files left behind by kills, full disks and lost workers: `python -m benchmarks.faults` from the root."""
