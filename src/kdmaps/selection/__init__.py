"""Choosing a kernel by held-out samples."""
