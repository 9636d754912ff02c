#!/bin/sh
# Ranks that srun starts, and a driver in a job of Slurm, on two hosts (namespaces.sh), each with Slurm's daemons, which
# this script starts and ends: slurm.sh, with Tessera built and the module tessera_hosts in build/test-mpi.
what="MPI tests with Slurm"
. "$(dirname "$0")/namespaces.sh"
for program in munged slurmctld slurmd srun sbatch; do
  PATH=$PATH:/usr/sbin command -v $program >/dev/null || left_out "no $program here (./setup --slurm)"
done
PATH=$PATH:/usr/sbin
passed=0 failed=0
keys=$folder/munge
export SLURM_CONF="$folder/slurm.conf"
export XDG_CACHE_HOME="$folder/cache" # of the driver's key; a home may be missing, and nothing is left there

# Slurm's daemons know each other by a key. They run as root here: no user is made for the tests.
write_settings() {
  mkdir -m 700 "$keys" && head -c 1024 /dev/urandom >"$keys/key" && chmod 600 "$keys/key" || exit 1
  mkdir -m 755 "$folder/socket" "$folder/state" && chmod 755 "$folder" || exit 1
  case $(slurmd -V) in # no groups of the kernel's; 22 knows no plugin of none, and makes none with this one
  *" 22."*) echo CgroupPlugin=cgroup/v1 ;;
  *) echo CgroupPlugin=disabled ;;
  esac >"$folder/cgroup.conf"
  echo "PMIxCliTmpDirBase=$folder/own" >"$folder/mpi.conf"
  cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$a(10.213.1.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/socket/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
NodeName=$a NodeAddr=10.213.1.1 CPUs=4
NodeName=$b NodeAddr=10.213.1.2 CPUs=4
PartitionName=all Nodes=ALL Default=YES State=UP
END
}

start_daemons() {
  "$folder/agent" $a munged --force --key-file="$keys/key" --socket="$folder/socket/munge" --pid-file="$keys/pid" \
    --log-file="$keys/log" --seed-file="$keys/seed" 2>/dev/null
  "$folder/agent" $a slurmctld
  for host in $a $b; do "$folder/agent" $host slurmd -N $host; done
}

are_idle() { [ "$("$folder/agent" $a sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]; }

await() {
  for _ in $(seq 300); do
    "$@" && return
    sleep 0.1
  done
  return 1
}

# Processes of jobs: all but the daemons.
job_pids() {
  for host in $a $b; do
    for pid in $(ip netns pids $host); do
      read -r name 2>/dev/null <"/proc/$pid/comm" || continue
      case $name in munged | slurmctld | slurmd | slurmscriptd) ;; *) echo "$name" ;; esac
    done
  done
}

nothing_left() { [ -z "$(job_pids)" ]; }

run_case() {
  name=$1
  shift
  if "$@" >"$folder/output" 2>&1 && await nothing_left; then
    passed=$((passed + 1))
    echo "Slurm: $name: ok"
  else
    failed=$((failed + 1))
    echo "Slurm: $name: FAILED; left: $(job_pids | tr '\n' ' ')"
    tail -n 30 "$folder/output" "$folder"/*.log
  fi
}

# joined CASE: four ranks on two hosts; the status of srun.
joined() {
  timeout -k 10 120 "$folder/agent" $a srun --mpi=pmix --kill-on-bad-exit -N 2 --ntasks-per-node=2 \
    "${ERL:-erl}" +S 1:1 +sbwt none -noshell -noinput -pa ebin build/test-mpi -run tessera_hosts joined "$1" "$folder"
}

# tessera_hosts writes for each rank what it knows of all, a sum, and a sum of saved tensors.
sums() {
  joined sums || return
  for rank in 0 1 2 3; do
    [ "$(grep -c '^\[10\.0\]\.$' "$folder/sums$rank")" = 2 ] && grep -q "rank => $rank," "$folder/sums$rank" &&
      [ "$(grep -o "host => <<\"$b\">>" "$folder/sums$rank" | wc -l)" = 2 ] || return
  done
}

killed() {
  joined killed && return 1
  [ "$(cat "$folder"/killed[0-3])" = "$(yes '[10.0].' | head -n 4)" ]
}

# Slurm starts mpirun's daemon on the other host, too.
driver() {
  "${ERLC:-erlc}" -I include -o build/test-mpi examples/digits.erl examples/cluster_digits.erl || return
  timeout -k 10 170 "$folder/agent" $a sbatch --wait -N 2 --ntasks-per-node=2 --cpus-per-task=1 -o "$folder/job" \
    examples/cluster.slurm cluster_digits build/test-mpi
  status=$?
  cat "$folder/job"
  [ $status = 0 ] && [ "$(grep -c "^rank .* on $b," "$folder/job")" = 2 ]
}

write_settings
start_daemons
await are_idle || { tail -n 20 "$folder"/*.log; echo "$what: 0 passed, 1 failed"; exit 1; }
run_case "ranks that join" sums
run_case "ranks that join, one killed" killed
run_case "a driver" driver
echo "$what: $passed passed, $failed failed"
[ $failed = 0 ]
