"""numpy.linalg.inv from file to file."""

import json
import resource
import sys
import time

import numpy as np

start = time.perf_counter()
a = np.load(sys.argv[1])
begun = time.perf_counter()
x = np.linalg.inv(a)
seconds = time.perf_counter() - begun
np.save(sys.argv[2], x)
peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
told = {"wall_seconds": time.perf_counter() - start, "seconds": seconds, "peak_bytes": peak, "version": np.__version__}
print(json.dumps(told))
