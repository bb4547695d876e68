//! NumPy files.
