#!/bin/sh
# Checks that functions of c_src/ have at most six parameters: more of them get a struct with names. Those that are left
# from before are listed; a new one fails, and so does a listed one that has become shorter.
cd "$(dirname "$0")/.." || exit 2
left="
add add_op add_start axpy_sweep build call_parts check_values compare copy_elements copy_rows enter extend finish_result gemm_show
hlo_op_with peel print_items run_part span_begin transpose_lines ts_expr_read ts_gemm_run ts_gemm_run_rows
ts_graph_add_op ts_infer ts_launch_run_piece ts_op_build ts_reducer_step ts_rules_add ts_whole_lower vectors
"
find c_src -name '*.[ch]' | sort | xargs awk -v most=6 -v left="$left" '
  BEGIN { count = split(left, words); for (i = 1; i <= count; i++) is_left[words[i]] = 1 }
  FNR == 1 { taking = 0 }
  /^[A-Za-z_][A-Za-z0-9_ *]*\(/ && !/^(typedef|return|else|if|for|while|switch|TS_|START_TEST)/ {
    head = ""
    line = FNR
    taking = 1
  }
  taking {
    head = head $0
    if ($0 ~ /\{$/) check(head)
    if ($0 ~ /[{;]$/ || $0 ~ /^}/) taking = 0
  }
  function check(text,  i, c, level, commas) {
    level = commas = 0
    for (i = 1; i <= length(text); i++) {
      c = substr(text, i, 1)
      if (c == "(") level++
      else if (c == ")" && --level == 0) break
      else if (c == "," && level == 1) commas++
    }
    if (commas + 1 <= most) return
    sub(/\(.*/, "", text)
    sub(/.*[ *]/, "", text)
    found[text] = 1
    if (text in is_left) return
    printf "%s:%d: %s has %d parameters, at most %d\n", FILENAME, line, text, commas + 1, most
    failed = 1
  }
  END {
    for (name in is_left) if (!(name in found)) {
      printf "mk/check-parameters.sh: %s needs not be listed\n", name
      failed = 1
    }
    exit failed
  }'
