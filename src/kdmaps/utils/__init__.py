"""Tools that every room uses: checks of arguments, atomic files, threads, progress."""
