"""Diagnostics of modes: samples behind each mode, checks of rates, relevance of inputs, resampling, projections."""
