"""Real time for samples without a clock: short unbiased runs ("bursts"), and everything that is measured on them."""
