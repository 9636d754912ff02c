#!/usr/bin/env python3
"""One table of several runs of `make bench JSON=FILE PEERS=python`: medians over the runs.

    python3 bench/summary.py run1.json run2.json ...
"""
import json
import math
import statistics
import sys

PEERS = {"jax": "XLA", "torch": "torch", "numpy": "NumPy"}


def median_of(runs, get):
    values = [v for v in map(get, runs) if v is not None]
    return statistics.median(values) if values else None


def figure(run, who, name, key):
    table = run["workloads"] if who == "tessera" else run["peers"].get(who, {})
    return table[name][key] if name in table else None


def ratio(run, peers, name, key="median_ms"):
    times = [t for t in (figure(run, p, name, key) for p in peers) if t is not None]
    return min(times) / figure(run, "tessera", name, key) if times else None


def cell(value):
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def row(runs, name):
    ratios = [median_of(runs, lambda r, p=p: ratio(r, p, name)) for p in [[q] for q in PEERS] + [list(PEERS)]]
    ratios.append(median_of(runs, lambda r: ratio(r, ["jax"], name, "min_ms")))
    times = [median_of(runs, lambda r, w=w: figure(r, w, name, "median_ms")) for w in ("tessera", "jax")]
    first = [median_of(runs, lambda r, w=w: figure(r, w, name, "compile_ms")) for w in ("tessera", "jax")]
    return ratios, times + first


def geometric_mean(values):
    return math.exp(statistics.mean(math.log(v) for v in values if v is not None))


def main():
    runs = [json.load(open(path)) for path in sys.argv[1:]]
    names = list(runs[0]["workloads"])
    rows = {n: row(runs, n) for n in names}
    print("| workload | " + " | ".join(f"over {p}" for p in PEERS.values()) + " | over the best | over XLA, minima | ms | XLA's ms | first call, ms | XLA's |")
    print("|---|" + "---|" * (len(PEERS) + 6))
    for n in names:
        print(f"| {n} | " + " | ".join(map(cell, rows[n][0] + rows[n][1])) + " |")
    for i, what in ((0, "XLA"), (len(PEERS), "the best peer"), (len(PEERS) + 1, "XLA, minima")):
        print(f"\nGeometric mean over {what}: {geometric_mean([rows[n][0][i] for n in names]):.2f}")
    print("\n| latency | |\n|---|---|")
    for n in runs[0].get("latency", {}):
        print(f"| {n} | {median_of(runs, lambda r: r['latency'].get(n)):.4g} |")


if __name__ == "__main__":
    main()
