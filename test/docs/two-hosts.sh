#!/bin/sh
# Runs a command of the pages on the first of two hosts, two network namespaces (test/mpi/namespaces.sh). The words host-a
# and host-b become the names of the namespaces, and 10.0.0.1 becomes the address of the first. mpirun reaches the other by an agent in the place of ssh.
# The cache of kernels is a new one.
# usage: two-hosts.sh COMMAND
command=$1
# shellcheck disable=SC2034 # for namespaces.sh, as in test/mpi/hosts.sh
what="a command for two hosts"
# shellcheck source=test/mpi/namespaces.sh
. "$(dirname "$0")/../mpi/namespaces.sh"
command=$(printf %s "$command" | sed "s/host-a/$a/g; s/host-b/$b/g; s/10\.0\.0\.1/10.213.1.1/g; s/{10, 0, 0, 1}/{10, 213, 1, 1}/g")
OMPI_MCA_plm_rsh_agent="$folder/agent" PRTE_MCA_plm_ssh_agent="$folder/agent" XDG_CACHE_HOME="$folder" \
  timeout -k 10 1200 "$folder/agent" $a sh -c '"$1"' sh "$command"
