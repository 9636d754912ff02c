#!/bin/sh
# Runs the carrier's tests on 1 to 4 ranks, and random programs on 1 to 8, and on 72: run.sh FOLDER LIBRARY, with mpi_exchanges,
# mpi_graphs and mpi_bells in the folder. Without Open MPI it says so. TESSERA_RANDOM_SEED and TESSERA_RANDOM_COUNT choose the programs;
# TESSERA_HALF=0 and 1 run every other number of ranks of them, from the first and from the second.
if [ $# -ne 2 ] || ! command -v mpirun >/dev/null; then
  echo "MPI tests: left out: no Open MPI here (./setup --mpi)"
  [ -z "${TESSERA_CI:-}" ]
  exit
fi
folder=$1 library=$2
# mpirun refuses root without these.
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
shared=vader
case $(mpirun --version) in *"Open MPI) 5"*) shared=sm ;; esac
passed=0 failed=0 idle=0

# run_ranks RANKS EXPECTED PROGRAM ARGUMENTS...: a line of the output begins with EXPECTED. A broken job leaves
# without finalizing MPI, which mpirun reports as a failure, so its status says nothing.
run_ranks() {
  ranks=$1 expected=$2
  shift 2
  output=$(timeout -k 10 1800 mpirun -np "$ranks" --oversubscribe --bind-to none --mca mpi_yield_when_idle $idle --mca pml ob1 --mca btl "self,$shared,tcp" "$@" 2>&1)
  status=$?
  if printf '%s\n' "$output" | grep -q "^$expected"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'MPI test %s on %s ranks FAILED with status %s\n%s\n' "$*" "$ranks" $status "$output"
  fi
}

for case in exchanges failures silence builds; do
  for ranks in 1 2 3 4; do
    [ $case = exchanges ] || [ $ranks -gt 1 ] || continue
    run_ranks $ranks "$case on $ranks ranks: ok" "$folder/mpi_exchanges" "$library" $case
  done
done
# With blocks in parts, as between hosts: sizes that are multiples of a part, and others.
for ranks in 2 4; do
  for part in 1000 65536; do
    run_ranks $ranks "exchanges on $ranks ranks: ok" env TESSERA_TEST_PART=$part "$folder/mpi_exchanges" "$library" exchanges
  done
done
for ranks in 1 2 4; do run_ranks $ranks "bells on $ranks ranks: ok" "$folder/mpi_bells"; done
run_ranks 2 "tessera: a call of MPI does not return" "$folder/mpi_exchanges" "$library" stuck
run_ranks 3 "signs on 3 ranks: ok" "$folder/mpi_exchanges" "$library" signs
# The ranks of mpi_graphs sleep where Open MPI would yield, so many of them start soon.
idle=1
# The same programs, of 12 partitions and then of 8, on other numbers of ranks.
first=${TESSERA_RANDOM_SEED:-1} count=${TESSERA_RANDOM_COUNT:-150} number=0
run_graphs() {
  number=$((number + 1))
  [ -z "${TESSERA_HALF:-}" ] || [ $((number % 2)) != "$TESSERA_HALF" ] || return 0
  run_ranks "$2" "$count programs on $2 ranks: ok" "$folder/mpi_graphs" "$library" "$1" "$first" "$count"
}
for ranks in 1 2 3 4; do run_graphs 12 $ranks; done
for ranks in 1 2 4 8; do run_graphs 8 $ranks; done
# More than 64 ranks, and than there are CPUs: most of the time is their start.
few=$(((count + 19) / 20))
# One rank compiles the kernels for the cache on disk: 72 ranks would compile the same ones at the same time.
run_ranks 1 "$few programs on 1 ranks: ok" "$folder/mpi_graphs" "$library" 72 "$first" "$few"
run_ranks 72 "$few programs on 72 ranks: ok" "$folder/mpi_graphs" "$library" 72 "$first" "$few"
echo "MPI tests: $passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
