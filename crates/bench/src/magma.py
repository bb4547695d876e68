"""Times MAGMA's batched LU and inverse through PyTorch, for a program that asks on standard input.

A request is a line `routine scalar order batch repetitions`; the answer a line of numbers: the largest residual ratio of a few
matrices, the milliseconds that a copy of the input takes, and those of each repetition. PyTorch copies the input before MAGMA
works in that copy's place; so the copy is in the repetitions. The first line says what answers.
"""

import sys

import torch

TYPES = {"f32": torch.float32, "f64": torch.float64, "c32": torch.complex64, "c64": torch.complex128}
DIFFERENT = 64
CHECKED = 4


def timed(work, repetitions):
    times = []
    for repetition in range(repetitions + 1):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        result = work()
        end.record()
        torch.cuda.synchronize()
        if repetition > 0:
            times.append(start.elapsed_time(end))
    return result, times


def norm(x):
    return x.abs().sum(dim=-2).amax(dim=-1)


def residual(routine, a, result, order, dtype):
    wide = torch.complex128 if dtype.is_complex else torch.float64
    unit = torch.finfo(dtype).eps / 2
    places = [k * (a.shape[0] - 1) // (CHECKED - 1) for k in range(CHECKED)]
    a = a[places].cpu().to(wide)
    if routine == "LU":
        lu, pivots = (part[places].cpu() for part in result[:2])
        p, lower, upper = torch.lu_unpack(lu.to(wide), pivots)
        ratio = norm(p @ lower @ upper - a) / (order * norm(a) * unit)
    else:
        x = result[places].cpu().to(wide)
        identity = torch.eye(order, dtype=wide)
        ratio = norm(identity - x @ a) / (order * norm(a) * norm(x) * unit)
    return ratio.max().item()


def measure(routine, scalar, order, batch, repetitions):
    dtype = TYPES[scalar]
    generator = torch.Generator(device="cuda").manual_seed(2023)
    different = torch.rand((min(batch, DIFFERENT), order, order), dtype=dtype, device="cuda", generator=generator)
    different = 2 * different - (1 + 1j if dtype.is_complex else 1)
    # Column-major, as LAPACK wants it.
    a = different.repeat((batch + DIFFERENT - 1) // DIFFERENT, 1, 1)[:batch].mT.contiguous().mT
    copy = torch.empty_like(a)
    _, copies = timed(lambda: copy.copy_(a), repetitions)
    del copy
    if routine == "LU":
        result, times = timed(lambda: torch.linalg.lu_factor_ex(a), repetitions)
    else:
        result, times = timed(lambda: torch.linalg.inv_ex(a)[0], repetitions)
    numbers = [residual(routine, a, result, order, dtype), sorted(copies)[len(copies) // 2]] + times
    print(" ".join(repr(number) for number in numbers), flush=True)


torch.backends.cuda.preferred_linalg_library("magma")
if not torch.cuda.is_available() or not torch.cuda.has_magma:
    sys.exit("this PyTorch has no GPU or no MAGMA")
version = [line for line in torch.__config__.show().splitlines() if "Magma" in line]
print(f"MAGMA {version[0].split()[-1] if version else '?'} through PyTorch {torch.__version__}", flush=True)
for line in sys.stdin:
    routine, scalar, *numbers = line.split()
    try:
        measure(routine, scalar, *map(int, numbers))
    except RuntimeError as error:
        print("failed: " + str(error).splitlines()[0], flush=True)
    torch.cuda.empty_cache()
