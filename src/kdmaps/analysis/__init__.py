"""What follows from fitted modes: error bars, coarse states, time scales of trajectories, certificates, metrics."""
