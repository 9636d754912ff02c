"""JAX's own tests on the plugin, beside XLA's CPU: run.py PLUGIN JAX FOLDER [FILE...]

JAX is a checkout of its repository, of the version that this Python has. The tests run on the plugin, and those that do not
pass there on XLA's CPU. Prints a table of how many pass on the plugin, and why the others fail that pass on XLA's CPU.
TESSERA_JAX_EVERY=N takes each N-th test, and TESSERA_JAX_SEED=S draws other cases and numbers, and another N-th. TESSERA_JAX_X64=1
turns types of 64 bits on."""
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


def run(name, jax, plugin, results, again=None):
    """Runs a file's tests, or those that did not pass in the results `again`. Until no test is left: a process that ends early has ended in the test that it began last."""
    here = os.path.dirname(os.path.abspath(__file__))
    env = dict(os.environ, TESSERA_JAX_RESULTS=results, PYTHONPATH=here, JAX_ENABLE_X64=os.environ.get("TESSERA_JAX_X64", "0"))
    env.setdefault("JAX_NUM_GENERATED_CASES", "10")
    env.pop("TESSERA_JAX_PLUGIN", None)
    env["JAX_PLATFORMS"] = "cpu"
    if plugin:
        env["TESSERA_JAX_PLUGIN"] = plugin
    if again:
        env["TESSERA_JAX_AGAIN"] = again
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
    print(f"{'file':24} {'tests':>6} {'judged':>6} {'passed':>8} {'refused':>8} {'failed':>7} {'ended':>6}")
    for name in names:
        own_path, cpu_path = (os.path.join(folder, f"{name}.{on}") for on in ("tessera", "cpu"))
        for path in (own_path, cpu_path):
            if os.path.exists(path):
                os.remove(path)
        run(name, jax, plugin, own_path)
        own = read(own_path)
        if any(outcome in ("failed", "begun") for outcome, _ in own.values()):
            run(name, jax, None, cpu_path, own_path)
        cpu = read(cpu_path)
        passed = [test for test, (outcome, _) in own.items() if outcome == "passed" or cpu.get(test, ("",))[0] == "passed"]
        count = collections.Counter(tests=len(own), cpu=len(passed))
        for test in passed:
            outcome, why = own[test]
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
    print(f"\n{100 * total['passed'] / max(1, total['cpu']):.1f} % of the tests pass that are not skipped and do not fail on XLA's CPU")
    for (kind, why), number in reasons.most_common(80):
        print(f"{number:6} {kind}: {why}")


if __name__ == "__main__":
    main()
