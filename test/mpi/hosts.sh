#!/bin/sh
# Clusters over two hosts: hosts.sh RELAY, with Tessera built, the module tessera_hosts in build/test-mpi, and the path of
# the program relay. A host is a network namespace with a name of its own; two cables join them, one for Tessera's sockets
# and mpirun's, one for the bytes of collectives. The relay is a third one, which is slow, for one case. The second host has a small disk of its own where the
# first one has a folder: FOLDER/disk. Needs root, and a system that allows namespaces; else says why it does nothing, which is a failure
# where nothing may be left out (TESSERA_CI). Leaves nothing.
relay=$(realpath "$1") || exit 2
left_out() {
  echo "MPI tests on two hosts: left out: $1"
  [ -z "${TESSERA_CI:-}" ] || { echo "MPI tests on two hosts: 0 passed, 1 failed"; exit 1; }
  exit 0
}

command -v mpirun >/dev/null || left_out "no Open MPI here (./setup --mpi)"
command -v ip >/dev/null || left_out "no program ip here: Debian's package iproute2 (./setup --mpi)"
[ "$(id -u)" = 0 ] || left_out "needs root"
a=tsa$$ b=tsb$$ folder=$(mktemp -d)
export TMPDIR="$folder" # daemons of MPI that are killed leave folders

# Only what runs in the namespaces, by pid.
end_all() {
  for host in $a $b; do
    for pid in $(ip netns pids $host 2>/dev/null); do kill -KILL "$pid" 2>/dev/null; done
    ip netns del $host 2>/dev/null
  done
  rm -rf "$folder"
}
trap end_all EXIT
trap 'exit 1' INT TERM

for host in $a $b; do
  ip netns add $host 2>"$folder/why" || left_out "no network namespaces here: $(tail -n 1 "$folder/why")"
  ip -n $host link set lo up || exit 1
done
unshare --uts true 2>/dev/null || left_out "no names of hosts of their own here"
for cable in control data; do
  [ $cable = control ] && net=10.213.1 || net=10.213.2
  ip -n $a link add $cable type veth peer name $cable netns $b 2>"$folder/why" || left_out "no veth here: $(tail -n 1 "$folder/why")"
  ip -n $a addr add $net.1/24 dev $cable && ip -n $b addr add $net.2/24 dev $cable &&
    ip -n $a link set $cable up && ip -n $b link set $cable up || exit 1
done

# What mpirun starts in the place of ssh: agent HOST COMMAND...
mkdir "$folder/disk" || exit 1
cat >"$folder/agent" <<END
#!/bin/sh
host=\$1
shift
disk=:
[ \$host = $a ] || disk='mount -t tmpfs -o size=1m tmpfs "$folder/disk"'
exec ip netns exec "\$host" unshare --uts sh -c "hostname \"\\\$1\" && \$disk && shift && eval \"\\\$*\"" sh "\$host" "\$@"
END
chmod 700 "$folder/agent"
ln -s "$relay" "$folder/relay"

timeout -k 10 900 "$folder/agent" $a exec "${ERL:-erl}" -noshell -noinput -pa ebin build/test-mpi -run tessera_hosts main $a $b "$folder"
