"""What is summed over samples, and what the sums mean."""
