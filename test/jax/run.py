"""JAX's own tests on the plugin, beside XLA's CPU: run.py PLUGIN JAX FOLDER [FILE...]

JAX is a checkout of its repository, of the version that this Python has. Prints a table of what passes on XLA's CPU, of
what of that passes on the plugin, and why the other tests fail. TESSERA_JAX_EVERY=N takes each N-th test."""
import collections
import json
import os
import re
import subprocess
import sys

FILES = ["lax_test", "lax_numpy_test", "lax_control_flow_test", "lax_autodiff_test", "linalg_test", "fft_test", "random_test", "nn_test"]


def read(path):
    results = {}
    if os.path.exists(path):
        for line in open(path):
            name, outcome, why = json.loads(line)
            results[name] = (outcome, why)
    return results


def run(name, jax, plugin, results):
    """Until no test is left: a process that ends early has ended in the test that it began last."""
    here = os.path.dirname(os.path.abspath(__file__))
    env = dict(os.environ, TESSERA_JAX_RESULTS=results, PYTHONPATH=here, JAX_ENABLE_X64="0")
    env.setdefault("JAX_NUM_GENERATED_CASES", "10")
    env.pop("TESSERA_JAX_PLUGIN", None)
    env["JAX_PLATFORMS"] = "cpu"
    if plugin:
        env["TESSERA_JAX_PLUGIN"] = plugin
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--maxfail=100000", "-p", "tessera_jax", "-p", "no:cacheprovider", "-W", "ignore",
               os.path.join(jax, "tests", name + ".py")]
    for _ in range(20):
        done = subprocess.run(command, env=env, cwd=jax, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode >= 0 and done.returncode < 128:
            return
        print(f"{name}: the process ended with {done.returncode}", flush=True)


def shorten(why):
    """The reason without the numbers of one program."""
    why = re.sub(r"^.*?(XlaRuntimeError|JaxRuntimeError): ", "", why)
    why = re.sub(r"PJRT_\w+: ", "", why)
    why = re.sub(r"(line|column) \d+[,:] ", "", why)
    why = re.sub(r"\d+", "N", why)
    return why[:110]


def main():
    plugin, jax, folder = (os.path.abspath(path) for path in sys.argv[1:4])
    names = sys.argv[4:] or FILES
    os.makedirs(folder, exist_ok=True)
    total, reasons = collections.Counter(), collections.Counter()
    print(f"{'file':24} {'tests':>6} {'XLA':>6} {'of these':>8} {'refused':>8} {'failed':>7} {'ended':>6}")
    for name in names:
        outputs = [os.path.join(folder, f"{name}.{on}") for on in ("cpu", "tessera")]
        for path, on in zip(outputs, (None, plugin)):
            if not (on is None and os.path.exists(path)):  # XLA's results are kept
                if os.path.exists(path):
                    os.remove(path)
                run(name, jax, on, path)
        cpu, own = (read(path) for path in outputs)
        passed = [test for test, (outcome, _) in cpu.items() if outcome == "passed"]
        count = collections.Counter(tests=len(cpu), cpu=len(passed))
        for test in passed:
            outcome, why = own.get(test, ("begun", ""))
            kind = outcome
            if outcome == "failed" and re.search("UNIMPLEMENTED|no rule|NotImplemented", why):
                kind = "refused"
            count[kind] += 1
            if outcome == "failed":
                reasons[(kind, shorten(why))] += 1
            if outcome == "begun":
                reasons[("ended the process", test)] += 1
        print(f"{name:24} {count['tests']:6} {count['cpu']:6} {count['passed']:8} {count['refused']:8} {count['failed']:7} {count['begun']:6}", flush=True)
        total += count
    print(f"{'all':24} {total['tests']:6} {total['cpu']:6} {total['passed']:8} {total['refused']:8} {total['failed']:7} {total['begun']:6}")
    print(f"\n{100 * total['passed'] / max(1, total['cpu']):.1f} % of what passes on XLA's CPU passes")
    for (kind, why), number in reasons.most_common(80):
        print(f"{number:6} {kind}: {why}")


if __name__ == "__main__":
    main()
