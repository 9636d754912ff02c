"""Whole models by Tessera, XLA, torch, ONNX Runtime and OpenVINO, on two CPUs: python3 bench/models/run.py [--turns N] [--seconds S] [--threads N] [NAME ...]

programs.py has each model once, by operations that jax_side.py and torch_side.py have. Tessera and XLA get JAX's program with the weights as arguments (Tessera
reads the text that jax.export writes); torch runs op by op; ONNX Runtime and OpenVINO get the file of torch.onnx, with the weights as constants. All get the
same random weights, and their results are compared. Each is timed in turns. A model with a state, such as a cache, gets the last call's. A name may be
a part of names. Peers that are not installed are left out by name, as are the peers without training. Exits with 1 if results differ or a program is refused.
`make bench-models PEERS=python3 [MODELS=name,name]' calls it."""

import argparse
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
SIDES = {"xla": ("jax_side", "Peer", "jax"), "torch": ("torch_side", "TorchPeer", "torch")}
SIDES |= {"onnxruntime": ("torch_side", "OnnxPeer", "onnxruntime"), "openvino": ("torch_side", "OpenvinoPeer", "openvino")}
INFERENCE_ONLY = ("onnxruntime", "openvino")
WIDE_ONLY = ("onnxruntime",)  # it has no products of bf16 on CPUs
# Of the largest number; the second of bf16, where 28 layers put each party 0.05 from what f32 gives.
TOLERANCE = {False: 2e-4, True: 0.08}


def serve(side, name, folder):
    """A peer's process, by lines: `run SECONDS' answers with milliseconds, `save FILE' with nothing."""
    import time

    import numpy as np

    import programs

    module, kind, _ = SIDES[side]
    peer = getattr(__import__(module), kind)(programs.MODELS[name], folder)
    peer.call()
    results = peer.values(peer.call())
    print("ok", flush=True)
    for line in sys.stdin:
        command, word = line.split()
        if command == "save":
            np.savez(word, **{f"out{i:04d}": x for i, x in enumerate(results)})
            print("ok", flush=True)
            continue
        end, times = time.perf_counter() + float(word), []
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            peer.call()
            times.append((time.perf_counter() - start) * 1e3)
        print("ok", *times, flush=True)


class Side:
    """A process that answers lines with lines."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self):
        for line in self.process.stdout:
            words = line.split()
            if words[:1] == ["ok"]:
                return [float(word) for word in words[1:]]
            if words[:1] == ["failed"]:
                raise RuntimeError(line.strip())
        raise RuntimeError("the process ended")

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def opened(side, name, folder, states):
    if side != "tessera":
        opened = Side([sys.executable, __file__, "--serve", side, name, folder])
        opened.answer()
        return opened
    env = dict(os.environ, TESSERA_CACHE_DIR="none")
    opened = Side(["erl", "-noshell", "-pa", "ebin", "build/bench", "-s", "tessera_exports", "main"], env)
    opened.ask("arguments", os.path.join(folder, "in.safetensors"))
    opened.ask("state", *states)
    opened.ask("first", os.path.join(folder, "model.mlir"))
    opened.ask("second")
    return opened


def export(name, folder):
    """Writes the program and the arguments for Tessera, by a process of its own, whose memory is free then. [where the state begins, leaves of it, bytes]"""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import jax_side; print(*jax_side.export_model(*sys.argv[2:]))"
    return [int(word) for word in subprocess.run([sys.executable, "-c", code, HERE, name, folder], check=True, stdout=subprocess.PIPE).stdout.split()]


def available():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))


def sides_of(name, wanted):
    import programs

    model = programs.MODELS[name]
    has = lambda side: not (side in INFERENCE_ONLY and model["kind"] == "training" or side in WIDE_ONLY and model["narrow"])
    return ["tessera"] + [side for side in wanted if has(side)]


def compare(name, sides, folder):
    """The largest difference between the first results of each peer and Tessera's, of the largest number."""
    import numpy as np

    load = lambda side: list(np.load(os.path.join(folder, side + ".npz")).values())
    ours, worst = load("tessera"), {}
    for side in sides[1:]:
        pairs = list(zip(ours, load(side), strict=True))
        same = all(a.shape == b.shape for a, b in pairs)
        worst[side] = max(float(np.max(np.abs(a.astype(float) - b)) / np.max(np.abs(b))) for a, b in pairs) if same else float("inf")
    return worst


def measure(name, wanted, options):
    folder = tempfile.mkdtemp(prefix="tessera-models-")
    sides, processes = sides_of(name, wanted), {}
    times, failed = {side: [] for side in sides}, {}
    try:
        *states, count = export(name, folder)
        keeps = 12 * count < available()
        for turn in range(options.turns):
            for side in [side for side in sides if side not in failed]:
                try:
                    if side not in processes:
                        processes[side] = opened(side, name, folder, states)
                    if turn == 0:
                        processes[side].ask("save", os.path.join(folder, side + ".npz"))
                    times[side].append(processes[side].ask("run", options.seconds))
                except RuntimeError as error:
                    failed[side] = str(error)
                if not keeps or side in failed:
                    processes.pop(side).close() if side in processes else None
        sides = [side for side in sides if side not in failed]
        return times, compare(name, sides, folder) if "tessera" in sides else {}, failed
    finally:
        for process in processes.values():
            process.close()
        shutil.rmtree(folder)


def row(name, times, worst, failed):
    """Figures of a table: milliseconds by minima, and the best peer's over ours by minima and by the median of the turns' medians."""
    least = {side: min(min(turn) for turn in turns) for side, turns in times.items() if side not in failed}
    middle = {side: statistics.median(statistics.median(turn) for turn in turns) for side, turns in times.items() if side not in failed}
    show = lambda value: f"{value:.3g}" if value < 100 else f"{value:.0f}"
    cells = [show(least[side]) if side in least else "" for side in ["tessera", *SIDES]]
    peers = [side for side in least if side != "tessera"]
    ratios = [min(of[side] for side in peers) / of["tessera"] if peers and "tessera" in of else None for of in (least, middle)]
    cells += [f"{ratio:.2f}" if ratio else "" for ratio in ratios] + [f"{max(worst.values(), default=0):.1e}"]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    return ratios


def arguments():
    options = argparse.ArgumentParser()
    options.add_argument("--turns", type=int, default=5)
    options.add_argument("--seconds", type=float, default=1.0)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--peers", default=",".join(SIDES))
    options.add_argument("names", nargs="*")
    return options.parse_args()


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(*sys.argv[2:])
    import programs

    options = arguments()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    wanted = [side for side in options.peers.split(",") if importlib.util.find_spec(SIDES[side][2])]
    print(
        "| model | " + " | ".join(["Tessera, ms", *SIDES]) + " | best / ours, minima | medians | difference |\n" + "|---" * (len(SIDES) + 5) + "|", flush=True
    )
    notes, bad, ratios = [f"not installed: {side}" for side in SIDES if side not in wanted], [], []
    for name in programs.MODELS:
        if options.names and not any(part in name for part in options.names):
            continue
        times, worst, failed = measure(name, wanted, options)
        ratios.append(row(name, times, worst, failed))
        tolerance = TOLERANCE[programs.MODELS[name]["narrow"]]
        bad += [f"{name}: {side} failed: {why}" for side, why in failed.items()]
        bad += [f"{name}: differs from {side} by {value:.2g}" for side, value in worst.items() if not value <= tolerance]
    for i, what in enumerate(("minima", "medians")):
        known = [pair[i] for pair in ratios if pair[i]]
        if known:
            print(f"\nGeometric mean of the best / ours, {what}: {statistics.geometric_mean(known):.2f}; the least {min(known):.2f}")
    print("\n".join(["", *notes, "left out: decoders with weights of 8 and 4 bits; training by onnxruntime and openvino; bf16 by onnxruntime", *bad]))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
