#!/bin/sh
# Clusters over two hosts (namespaces.sh): hosts.sh RELAY, with Tessera built, the module tessera_hosts in build/test-mpi,
# and the path of the program relay. One cable is for Tessera's sockets and mpirun's, one for the bytes of collectives.
# The relay is a third one, which is slow, for one case.
relay=$(realpath "$1") || exit 2
what="MPI tests on two hosts"
. "$(dirname "$0")/namespaces.sh"
ln -s "$relay" "$folder/relay"

# What mpirun starts in the place of ssh is the agent.
timeout -k 10 2700 "$folder/agent" $a exec "${ERL:-erl}" -noshell -noinput -pa ebin build/test-mpi -run tessera_hosts main $a $b "$folder"
