"""What kills, full disks and lost workers leave behind: `python -m benchmarks.faults` from the root."""
