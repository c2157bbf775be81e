"""File formats: one module for each, with its reader, its writer, and the reader of the objects of its library."""
