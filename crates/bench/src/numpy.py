"""Times NumPy's stacked inverse, for a program that asks on standard input.

A request is a line `routine scalar order batch repetitions`; the answer a line of numbers: the largest residual ratio of a few
matrices, 0 for a copy that is not made, and the milliseconds of each repetition. The first line says what answers.
"""

import sys
import time

import numpy as np

TYPES = {"f32": np.float32, "f64": np.float64, "c32": np.complex64, "c64": np.complex128}
DIFFERENT = 64
CHECKED = 4


def norm(x):
    return np.abs(x).sum(axis=-2).max(axis=-1)


def residual(a, x, order, dtype):
    places = [k * (len(a) - 1) // (CHECKED - 1) for k in range(CHECKED)]
    wide = np.clongdouble if np.dtype(dtype).kind == "c" else np.longdouble
    a, x = a[places].astype(wide), x[places].astype(wide)
    unit = np.finfo(dtype).eps / 2
    return float((norm(np.eye(order) - x @ a) / (order * norm(a) * norm(x) * unit)).max())


def measure(routine, scalar, order, batch, repetitions):
    if routine != "inverse":
        raise ValueError("NumPy has no LU")
    dtype = TYPES[scalar]
    rng = np.random.default_rng(2023)
    shape = (min(batch, DIFFERENT), order, order)
    different = 2 * rng.random(shape) - 1 + (1j * (2 * rng.random(shape) - 1) if np.dtype(dtype).kind == "c" else 0)
    a = np.tile(different.astype(dtype), ((batch + DIFFERENT - 1) // DIFFERENT, 1, 1))[:batch]
    times = []
    for repetition in range(repetitions + 1):
        start = time.perf_counter()
        x = np.linalg.inv(a)
        if repetition > 0:
            times.append(1e3 * (time.perf_counter() - start))
    print(" ".join(repr(number) for number in [residual(a, x, order, dtype), 0.0] + times), flush=True)


print(f"NumPy {np.__version__}", flush=True)
for line in sys.stdin:
    routine, scalar, *numbers = line.split()
    try:
        measure(routine, scalar, *map(int, numbers))
    except (ValueError, MemoryError, np.linalg.LinAlgError) as error:
        print("failed: " + str(error).splitlines()[0], flush=True)
