"""Our code beside every installed library, interleaved in one run: `python -m benchmarks peers`.

workloads.py has the rows, adapters/ a file for each library. worker.py is the process that one library runs in,
driver.py takes their samples in turns, report.py and plot.py write the tables and the picture.
"""
