"""Exported programs by Tessera and by XLA, on the same text and arguments: python3 bench/exports.py [--folder DIR] [--seconds S] [NAME ...]

Exports each program of export_programs.py by jax.export, compiles and runs the text by Tessera (a VM for each program, without a cache on
disk) and by XLA's CPU, compares the results, and times both in turns. The first call is reading, compiling and running once. Results that differ from XLA's by more than
2e-5 must be nearer to those of f64 than XLA's. Needs jax, flax and optax. `make bench-exports PEERS=python3 [ONLY=name,name]` calls it;
ONLY=loops takes the loops of small ops of export_loops.py. Exits
with 1 if results are wrong or a program is refused."""
import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import jax
import numpy as np
from jax import export
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir
from jaxlib import _jax, xla_client

import export_loops
import export_programs

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TURNS = 5
TOLERANCE = 2e-5  # as in tessera_stablehlo_tests


class Xla:
    def __init__(self, text, arguments, function):
        """A program with symbols for sizes is refined by JAX: function is its call."""
        start = time.perf_counter()
        self.arguments = [jax.device_put(a) for a in arguments]
        placed = time.perf_counter()
        if function is not None:
            compiled = jax.jit(function).lower(*self.arguments).compile()
            self.executable = compiled.runtime_executable()
        else:
            client = jax.devices()[0].client
            with mlir.make_ir_context():
                module = ir.Module.parse(text)
                devices = _jax.DeviceList(tuple(client.local_devices()[:1]))
                self.executable = client.compile_and_load(module, devices, xla_client.CompileOptions())
        self.results = self.run()
        self.first = (time.perf_counter() - placed) * 1e3
        self.placing = placed - start

    def run(self):
        results = self.executable.execute_sharded(self.arguments).disassemble_into_single_device_arrays()
        for result in results:
            result[0].block_until_ready()
        return [result[0] for result in results]

    def times(self, seconds):
        end, times = time.perf_counter() + seconds, []
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            self.run()
            times.append((time.perf_counter() - start) * 1e3)
        return times


class Tessera:
    def __init__(self):
        env = dict(os.environ, TESSERA_CACHE_DIR="none")
        command = ["erl", "-noshell", "-pa", "ebin", "build/bench", "-s", "tessera_exports", "main"]
        self.vm = subprocess.Popen(command, cwd=HERE, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.vm.stdin.write(" ".join(map(str, words)) + "\n")
        self.vm.stdin.flush()
        answer = self.vm.stdout.readline().split(" ", 1)
        if answer[0].strip() != "ok":
            raise RuntimeError(answer[1].strip() if len(answer) > 1 else "the VM ended")
        return [float(word) for word in answer[1].split()] if len(answer) > 1 else []

    def close(self):
        self.vm.stdin.close()
        self.vm.wait()


def difference(expected, got):
    """The largest one, relative to numbers above 1; NaNs are equal."""
    if expected.shape != got.shape:
        return math.inf
    if expected.size == 0:
        return 0.0
    with np.errstate(all="ignore"):
        e, g = expected.astype(np.complex128), got.astype(np.complex128)
        same = (e == g) | (np.isnan(e) & np.isnan(g))
        return float(np.max(np.where(same, 0, np.nan_to_num(abs(e - g) / (1 + abs(e)), nan=math.inf))))


def error_of(name, results):
    """The difference from the same program in f64. Where rounding is what makes the difference from XLA, it says who is nearer."""
    f, arguments = export_programs.PROGRAMS[name]
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64) if np.asarray(leaf).dtype == np.float32 else leaf, arguments)
        expected = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(f)(*wide))]
    return max(difference(*pair) for pair in zip(expected, results))


def exported(name, folder):
    """The path of the text, the leaves of the arguments, and JAX's call where sizes are symbols."""
    if name in export_programs.SYMBOLIC:
        f, arguments, shape = export_programs.SYMBOLIC[name]
        first = jax.ShapeDtypeStruct(export.symbolic_shape(shape), arguments[0].dtype)
        exported = export.export(jax.jit(f), platforms=["cpu"])(first, *arguments[1:])
    else:
        f, arguments = export_programs.PROGRAMS[name]
        exported = export.export(jax.jit(f, keep_unused=True), platforms=["cpu"])(*arguments)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    path = os.path.join(folder, name)
    with open(path + ".mlir", "w") as file:
        file.write(exported.mlir_module())
    np.savez(path + ".npz", **{f"in{i:04d}": leaf for i, leaf in enumerate(leaves)})
    if name not in export_programs.SYMBOLIC:
        return path, exported.mlir_module(), leaves, None
    tree = jax.tree.structure(arguments)
    return path, exported.mlir_module(), leaves, lambda *given: exported.call(*jax.tree.unflatten(tree, given))


def measure(name, folder, seconds):
    path, text, leaves, call = exported(name, folder)
    ours = Tessera()
    try:
        ours.ask("arguments", path + ".npz")
        first = ours.ask("first", path + ".mlir")
        theirs = Xla(text, leaves, call)
        ours.ask("save", path + ".got.npz")
        with np.load(path + ".got.npz") as got:
            pairs = [(np.asarray(expected), got[f"out{i:04d}"]) for i, expected in enumerate(theirs.results)]
        worst = max(difference(*pair) for pair in pairs)
        errors = [error_of(name, side) for side in zip(*pairs)][::-1] if worst > TOLERANCE else []
        times = [], []
        for _ in range(TURNS):
            times[0].extend(ours.ask("run", seconds / TURNS))
            times[1].extend(theirs.times(seconds / TURNS))
    finally:
        ours.close()
    return {"worst": worst, "errors": errors, "min": [min(t) for t in times], "median": [statistics.median(t) for t in times], "first": [sum(first), theirs.first],
            "read": first[0]}


def figure(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def geometric_mean(values):
    return math.exp(statistics.mean(map(math.log, values)))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--folder")
    options.add_argument("--seconds", type=float, default=0.5)
    options.add_argument("names", nargs="*")
    options = options.parse_args()
    folder = options.folder or tempfile.mkdtemp(prefix="tessera-exports-")
    os.makedirs(folder, exist_ok=True)
    rows, notes, failed = {}, [], []
    print("| program | over XLA, minima | over XLA, medians | ms | XLA's ms | first call, ms | XLA's | difference |\n|---|---|---|---|---|---|---|---|")
    names = options.names or [*export_programs.PROGRAMS, *export_programs.SYMBOLIC]
    export_programs.PROGRAMS.update(export_loops.LOOPS)
    for name in export_loops.LOOPS if names == ["loops"] else names:
        try:
            row = measure(name, folder, options.seconds)
        except RuntimeError as error:
            failed.append(f"{name}: {error}")
            continue
        rows[name] = row
        if row["errors"]:
            ours, theirs = row["errors"]
            text = f"{name}: differs by {row['worst']:.2g}; from f64 {ours:.2g}, XLA {theirs:.2g}"
            (notes if ours <= theirs else failed).append(text)
        cells = [row[key][1] / row[key][0] for key in ("min", "median")] + row["min"] + row["first"] + [row["worst"]]
        print(f"| {name} | " + " | ".join(map(figure, cells)) + " |", flush=True)
    for key, what in (("min", "speed, minima"), ("median", "speed, medians"), ("first", "first call")):
        ratios = {name: row[key][1] / row[key][0] for name, row in rows.items()}
        if ratios:
            least = min(ratios, key=ratios.get)
            print(f"\nGeometric mean over XLA, {what}: {geometric_mean(ratios.values()):.2f}; the least: {ratios[least]:.2f} ({least})")
    print("\n".join(["", f"{len(rows)} ran"] + notes + failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
