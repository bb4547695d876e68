// A block column: how many columns, how many rows a thread, and its lines in shared memory.
#pragma once
#include "operand.cuh"

constexpr int NB = BATCHLA_NB;      // columns
constexpr int ROWS = BATCHLA_ROWS;  // rows a thread holds in registers; 0: the block column lies in shared memory
// A line of it by whole packs, and one more against bank conflicts.
constexpr int PACKS = (NB + Pack::LENGTH - 1) / Pack::LENGTH;
constexpr int LINE = (PACKS + 1) * Pack::LENGTH;
