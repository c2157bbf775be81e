"""File formats: one module for each, with its reader, its writer, and readers of objects of its library."""
