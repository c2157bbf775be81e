"""What follows from fitted modes: error bars, relevance of inputs, coarse states, time scales of trajectories, certificates, metrics."""
