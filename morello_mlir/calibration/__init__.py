"""Calibration: measuring this machine, and fitting the cost model's coefficients to what was measured.

`recipe` and `sampler` make random schedules, `features` counts what a schedule is charged for, `measure` times
schedules and `kernel_table` register tiles, `fit` finds coefficients. See docs/calibration.md.
"""
