#!/bin/sh
# Checks that functions of c_src/ have at most six parameters: more of them get a struct with names.
cd "$(dirname "$0")/.." || exit 2
find c_src -name '*.[ch]' | sort | xargs awk -v most=6 '
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
    printf "%s:%d: %s has %d parameters, at most %d\n", FILENAME, line, text, commas + 1, most
    failed = 1
  }
  END { exit failed }'
