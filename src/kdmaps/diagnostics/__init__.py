"""What follows from modes: error bars, relevance of inputs, coarse states, trajectories, certificates, metrics."""
