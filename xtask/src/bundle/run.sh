#!/usr/bin/env bash
# Proves the CUDA backend on this machine's GPU, and prints a report. Exits with 1 where anything failed or did not take place.
#
#   ./run [PART ...]      the parts: machine conformance forced sanitizer program; all of them where none is named
#
# LIMIT      seconds that one process may take (550)
# PROCESSES  processes side by side (one fewer than cores): NVRTC compiles one kernel at a time in each
# LOGS       where what they say is kept (a fresh folder)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

export BATCHLA_REQUIRE=cuda
export logs=${LOGS:-$(mktemp -d)} limit=${LIMIT:-550}
mkdir -p "$logs" || exit 1
cores=$(nproc)
processes=${PROCESSES:-$((cores > 1 ? cores - 1 : 1))}
report=$logs/report
export report
: >"$report"

# Compiled kernels go to a folder of this user's alone; those that were compiled beforehand are there already.
BATCHLA_CACHE_DIR=$(mktemp -d) || exit 1
export BATCHLA_CACHE_DIR
trap 'rm -rf "$BATCHLA_CACHE_DIR"' EXIT
if [ -e cache.tar.gz ]; then tar --no-same-owner -xzf cache.tar.gz -C "$BATCHLA_CACHE_DIR" || exit 1; fi
chmod 700 "$BATCHLA_CACHE_DIR"

line() { printf '%-8s%-52s%5s s  %s\n' "$@" | tee -a "$report"; }
export -f line

# job NAME COMMAND...: runs it, keeps what it says, and judges it in one line of the report.
job() {
  local name=$1 start=$SECONDS verdict=ok why rc=0
  shift
  local log=$logs/${name//[^a-z0-9_]/-}.log
  timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1 || rc=$?
  why=$(grep -h '^test result' "$log" | tail -n 1 | cut -d';' -f1-3)
  if ((rc == 124 || rc == 137)); then
    verdict=FAILED why="took longer than $limit s"
  elif ((rc)); then
    verdict=FAILED why="exit code $rc; ${why:-$(tail -n 1 "$log")}"
  elif grep -q '^test result: ok. 0 passed' "$log"; then
    verdict=FAILED why="no test of that name ran"
  elif grep -qi 'skipped' "$log" || grep -q '[1-9][0-9]* ignored' "$log"; then
    verdict=SKIPPED why=$(grep -i -m 1 -E 'skipped|ignored' "$log")
  fi
  line "$verdict" "$name" $((SECONDS - start)) "$why"
}
export -f job

# The tests of one module, in a process of its own.
module() {
  local tests
  mapfile -t tests < <(grep "^$1::[a-z_0-9]*$" "$logs/all")
  job "$1" tests/conformance --exact --show-output --test-threads 4 "${tests[@]}"
}
export -f module

# One test, in a process of its own: those that compile most do not wait for each other.
one() { job "$1" tests/conformance --exact --show-output --test-threads 1 "$1"; }
export -f one

# checked TOOL MODULE: some checks under a tool of compute-sanitizer, which finds what a right result may hide.
checked() {
  local tests=() check
  for check in factors_multiply_back_to_the_matrix the_inverse_times_the_matrix_is_the_identity solutions_solve_their_systems \
    determinants_are_the_product_of_the_pivots one_bad_matrix_spares_its_neighbours orders_and_places_keep_bits_and_gaps; do
    grep -qx "$2::$check" "$logs/all" || { line FAILED "$1 $2" 0 "there is no check $check"; return; }
    tests+=("$2::$check")
  done
  job "$1 $2" compute-sanitizer --tool "$1" --error-exitcode 9 --target-processes all \
    tests/conformance --exact --show-output --test-threads 1 "${tests[@]}"
}
export -f checked

side_by_side() { xargs -r -P "$processes" -L 1 bash -c "$1"' "$@"' "$1"; }

parts=${*:-machine conformance forced sanitizer program}
tests/conformance --list 2>/dev/null | sed -n 's/: test$//p' >"$logs/all"
sed 's/::[a-z_0-9]*$//' "$logs/all" | sort -u >"$logs/modules"

echo "host      $(uname -sr), $cores cores, $processes processes side by side"
echo "GPU       $(nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader 2>&1 | head -n 4)"
echo "kernels   $(find "$BATCHLA_CACHE_DIR" -name '*.kernel' | wc -l) compiled beforehand"
echo "logs      $logs"
start=$SECONDS
for part in $parts; do
  echo "== $part"
  case $part in
  machine)
    for binary in tests/*; do
      if [ "$binary" != tests/conformance ]; then job "$(basename "$binary")" "$binary" --show-output --test-threads 1; fi
    done
    ;;
  conformance) grep -x '[a-z0-9_]*::[a-z0-9_]*' "$logs/all" | side_by_side one ;;
  forced) grep '::' "$logs/modules" | side_by_side module ;;
  sanitizer)
    if command -v compute-sanitizer >/dev/null; then
      for tool in memcheck racecheck initcheck synccheck; do
        grep '^sanitized::' "$logs/modules" | sed "s/^/$tool /"
      done | side_by_side checked
    else
      line SKIPPED "memory and race checkers" 0 "there is no compute-sanitizer in PATH"
    fi
    ;;
  program)
    for file in data/*.npy; do
      job "$(basename "$file" .npy)" ./batchla invert "$file" -o "$logs/$(basename "$file")" --backend cuda --check
    done
    ;;
  *) line FAILED "$part" 0 "there is no such part" ;;
  esac
done

echo "== report"
failed=$(grep -c '^FAILED' "$report") skipped=$(grep -c '^SKIPPED' "$report") ok=$(grep -c '^ok' "$report")
grep -E '^(FAILED|SKIPPED)' "$report"
echo "$ok ok, $failed failed, $skipped skipped, $((SECONDS - start)) s, $(find "$BATCHLA_CACHE_DIR" -name '*.kernel' | wc -l) kernels at the end"
((failed == 0 && skipped == 0 && ok > 0))
