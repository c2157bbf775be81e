"""The p×p eigenproblem and its solutions, the modes; nothing here reads samples."""
