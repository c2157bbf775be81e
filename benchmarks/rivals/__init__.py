"""kdmaps and what people would use instead: accuracy, time and memory on the same samples.

python -m benchmarks.rivals --help
"""
