"""Tools that all packages use: checks of arguments, atomic files, threads, progress."""
