"""kdmaps and other libraries: accuracy, time and memory on the same samples.

python -m benchmarks.rivals --help
"""
