"""Models on disk, pictures, words, the report, the display in notebooks."""
