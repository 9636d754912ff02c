#!/bin/sh
# Runs the programs of xla_cases on a plugin and compares: run.sh BUILD PLUGIN PYTHON
set -e
build=$1 plugin=$2 python=$3
rm -f "$build"/xla/cases/*.got "$build"/xla/cases/*.err
# Otherwise a value between two half-precision ops is not rounded to half precision.
XLA_FLAGS="${XLA_FLAGS:-} --xla_allow_excess_precision=false"
export XLA_FLAGS
find "$build"/xla/cases -name '*.txt' | sed 's,.*/,,; s,\.txt$,,' | sort |
  xargs "$build"/pjrt_cases "$build"/xla/cases "$plugin"
"$python" test/xla/run.py --got "$build"/xla/cases
