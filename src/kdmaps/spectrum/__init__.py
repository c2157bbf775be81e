"""The p×p eigenproblem and the modes that solve it; samples are never seen here."""
