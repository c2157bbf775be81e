"""Forecasts of frames, and spectra of deterministic systems: candidates, the choice among them, the stored result."""
