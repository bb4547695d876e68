"""Inverts every matrix of the .npy files in a folder by LAPACK's getrf and getri, and saves the files in Fortran order too."""

import pathlib
import sys

import numpy
import scipy
from scipy.linalg import lapack

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.npy")):
    matrices = numpy.load(path)
    letter = LETTERS[matrices.dtype.name]
    getrf, getri = getattr(lapack, letter + "getrf"), getattr(lapack, letter + "getri")
    inverses = numpy.full_like(matrices, numpy.nan)
    for matrix, inverse in zip(matrices, inverses):
        lu, pivots, info = getrf(matrix)
        if info == 0:
            result, info = getri(lu, pivots)
        if info == 0:
            inverse[...] = result
    numpy.save(path.with_suffix(".inverse.npy"), inverses)
    numpy.save(path.with_suffix(".fortran.npy"), numpy.asfortranarray(matrices))

lapack_library = scipy.show_config(mode="dicts")["Build Dependencies"]["lapack"]
print(f"scipy {scipy.__version__}, numpy {numpy.__version__}, {lapack_library['name']} {lapack_library['version']}")
