"""Runs the programs of xla_cases by XLA and compares: python3 run.py FOLDER [NAME ...]

Needs jax, or with --got in front of the folder only ml_dtypes and numpy: then it compares what pjrt_cases left. Exits with 1 if any result differs by more than its kind allows, or if XLA refuses a program.
"""
import collections
import json
import os
import re
import signal
import sys
import time

# Otherwise a value between two half-precision ops is not rounded to half precision.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_allow_excess_precision=false"

import ml_dtypes
import numpy as np

GOT = sys.argv[1:2] == ["--got"]
if not GOT:
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax.extend import backend
    from jaxlib import _jax, xla_client

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
          "f8": ml_dtypes.float8_e5m2, "f8_e4m3fn": ml_dtypes.float8_e4m3fn, "s2": ml_dtypes.int2, "u2": ml_dtypes.uint2,
          "s4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "c64": np.complex64, "c128": np.complex128}
COMPLEX = {"c64": "f32", "c128": "f64"}  # and the types of their parts
for bits in (8, 16, 32, 64):
    DTYPES["s%d" % bits] = np.dtype("int%d" % bits)
    DTYPES["u%d" % bits] = np.dtype("uint%d" % bits)
FRACTION_BITS = {"f8": 2, "f8_e4m3fn": 3, "f16": 10, "bf16": 7, "f32": 23, "f64": 52, "c64": 23, "c128": 52}
SMALLEST_NORMAL = {"f8": 2.0**-14, "f8_e4m3fn": 2.0**-6, "f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022,
                   "c64": 2.0**-126, "c128": 2.0**-1022}
# Units in the last place that a function may be off, where not 16. XLA's own error is most of it.
FUNCTION_UNITS = {"atanh": 64}
# Ops whose elements mix those of a line or matrix: they differ by units of the result's largest element.
MIXING = {"conv", "cholesky", "triangular_solve", "fft", "ifft", "rfft", "irfft"}
# The same of complex numbers, whose products are differences.
MIXING_COMPLEX = {"dot_general", "reduce_sum", "cumulative_sum", "window_sum", "reduce_product", "cumulative_product",
                  "window_product"}


class Case:
    """What xla_cases wrote about a program."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)
        self.module = open(path + ".mlir").read()
        self.left_out = None
        self.args, self.results, self.kinds = [], [], []
        data, at = open(path + ".bin", "rb").read(), 0
        for line in open(path + ".txt"):
            if line.startswith("left out: "):
                self.left_out = line[len("left out: "):].strip()
                return
            what, dtype, shape, *kind = line.split()
            shape = [] if shape == "-" else [int(d) for d in shape.split(",")]
            array = np.frombuffer(data, DTYPES[dtype], int(np.prod(shape)), at).reshape(shape)
            at += array.nbytes
            if what == "arg":
                self.args.append(array)
            else:
                self.results.append((dtype, array))
                self.kinds.append(kind)


def got(case):
    """What pjrt_cases wrote."""
    if os.path.exists(case.path + ".err"):
        raise RuntimeError(open(case.path + ".err").read().strip())
    data, at, results = open(case.path + ".got", "rb").read(), 0, []
    for dtype, expected in case.results:
        results.append(np.frombuffer(data, DTYPES[dtype], expected.size, at).reshape(expected.shape))
        at += expected.nbytes
    return results


def execute(client, case):
    if GOT:
        return got(case)
    with mlir.make_ir_context():
        module = ir.Module.parse(case.module)
        options = xla_client.CompileOptions()
        devices = _jax.DeviceList(tuple(client.local_devices()[:1]))
        executable = client.compile_and_load(module, devices, options)
    args = [jax.device_put(arg) for arg in case.args]
    results = executable.execute_sharded(args).disassemble_into_single_device_arrays()
    return [np.asarray(result[0]) for result in results]


def wide(array):
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def magnitude(dtype, op, expected):
    """What an error of a unit is a unit of: of complex numbers the modulus."""
    size = abs(wide(expected))
    if op in MIXING or (dtype in COMPLEX and op in MIXING_COMPLEX):
        return np.max(size[np.isfinite(size)], initial=0.0)
    return size


def is_semidefinite(factor):
    """The matrices whose factor has a 0 on its diagonal: XLA's are NaN there."""
    if factor.ndim < 2:  # a part of one
        return np.zeros(factor.shape, bool)
    zero = np.any(np.diagonal(wide(factor), axis1=-2, axis2=-1) == 0, axis=-1)
    return np.broadcast_to(zero[..., None, None], factor.shape)


def same(dtype, expected, got):
    """Where both are the same value. Any NaN is any other, and XLA flushes subnormal numbers to zero."""
    if dtype not in FRACTION_BITS:
        return expected == got
    tiny = SMALLEST_NORMAL[dtype]
    if dtype in COMPLEX:
        return same(COMPLEX[dtype], expected.real, got.real) & same(COMPLEX[dtype], expected.imag, got.imag)
    e, g = expected.astype(np.float64), got.astype(np.float64)
    return (e == g) | (np.isnan(e) & np.isnan(g)) | ((abs(e) < tiny) & (abs(g) < tiny))


def near(dtype, expected, got, bound):
    with np.errstate(invalid="ignore"):
        distance = abs(wide(expected) - wide(got))
    return same(dtype, expected, got) | (distance <= bound)


def transposed(x):
    return np.conj(np.swapaxes(x, -1, -2))


def lower_part(a):
    return np.tril(a) + transposed(np.tril(a, -1))


# For each factorization what its results make of themselves, and what that must be; of arguments and results.
FACTORS = {
    "solve": (lambda a, b, x: a @ columns(a, x), lambda a, b, x: columns(a, b)),
    "lu": (lambda a, p, l, u: p @ l @ u, lambda a, p, l, u: a),
    "qr": (lambda a, q, r: q @ r, lambda a, q, r: a),
    "eigh": (lambda a, w, v: (v * w[..., None, :]) @ transposed(v), lambda a, w, v: lower_part(a)),
    "svd": (lambda a, u, s, v: (u[..., :s.shape[-1]] * s[..., None, :]) @ v[..., :s.shape[-1], :],
            lambda a, u, s, v: a),
}


def columns(a, b):
    return b[..., None] if b.ndim < a.ndim else b


def largest(x):
    """Of each matrix."""
    return np.max(abs(x), axis=(-2, -1), initial=0.0, keepdims=True)


def determinant_differs(matrix, got, unit):
    """Errors of some units of the matrix change the determinant by some units of the product of the rows' lengths."""
    rows = np.prod(np.linalg.norm(matrix, axis=-1), axis=-1)
    return np.linalg.det(matrix), got, 64 * matrix.shape[-1] * unit * rows


def factors_differ(op, args, got, unit):
    """What the results must make when they are put together, what they make, and how far apart both may be."""
    matrix = args[0]
    if op == "determinant":
        return determinant_differs(matrix, got[0], unit)
    make, want = FACTORS[op]
    made, wanted = make(*args, *got), want(*args, *got)
    size = largest(matrix) * (largest(columns(matrix, got[0])) if op == "solve" else 1)
    return wanted, made, 64 * max(matrix.shape[-2:]) * unit * np.maximum(largest(wanted), size)


def is_lost(args, expected, got, unit):
    """Whether a result is not finite where Tessera's is, though the matrices are far from singular ones."""
    lost = any(np.any(np.isfinite(e) & ~np.isfinite(g)) for e, g in zip(expected, got))
    return lost and np.all(np.isfinite(args[0])) and np.all(np.linalg.cond(args[0]) < 0.1 / unit)


def check_factors(case, index, results, unit):
    """Compares all results of a factorization at its first one."""
    op, number, *numbers = case.kinds[index][1:]
    if number != "0" or case.results[index][1].size == 0:
        return None
    count = 1
    while index + count < len(results) and case.kinds[index + count][1:3] == [op, str(count)]:
        count += 1
    args = [wide(case.args[int(i)]) for i in numbers]
    got = [wide(result) for result in results[index:index + count]]
    with np.errstate(all="ignore"):
        if is_lost(args, [wide(e) for _, e in case.results[index:index + count]], got, unit):
            return "%s of numbers far from any limit is not finite" % op
        wanted, made, bound = factors_differ(op, args, got, unit)
        known = np.isfinite(wanted) & np.isfinite(made) & np.isfinite(bound)
        wrong = known & (abs(made - wanted) > bound)
    return "the results of %s make %r, not %r" % (op, made[wrong].flat[0], wanted[wrong].flat[0]) if np.any(wrong) else None


def differences(case, index, results, counts):
    got, (dtype, expected) = results[index], case.results[index]
    kind, *detail = case.kinds[index]
    unit = 2.0 ** -FRACTION_BITS.get(dtype, 0)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return "is %s%s, expected %s%s" % (got.dtype, got.shape, expected.dtype, expected.shape)
    if kind == "unknown":
        counts["results left to the cut program, after " + detail[0]] += 1
        return None
    if kind == "factors":
        counts["results compared, factors"] += 1
        return check_factors(case, index, results, unit)
    with np.errstate(all="ignore"):
        if kind == "exact":
            good = same(dtype, expected, got)
        elif kind == "approx":
            units = FUNCTION_UNITS.get(detail[0], 16)
            bound = units * unit * magnitude(dtype, detail[0], expected) + SMALLEST_NORMAL[dtype]
            good = near(dtype, expected, got, bound)
            if dtype in COMPLEX:  # which part of a product with an infinity is NaN depends on its order
                good |= ~np.isfinite(wide(expected)) & ~np.isfinite(wide(got))
            if detail[0] == "cholesky":
                good |= is_semidefinite(expected)
            # A product that passes through infinity in one order need not in another.
            if detail[0] in ("reduce_product", "cumulative_product"):
                good |= ~np.isfinite(wide(expected)) | ~np.isfinite(wide(got))
        else:
            scale = case.results[int(detail[1])][1].astype(np.float64)
            good = near(dtype, expected, got, (2 + int(detail[0])) * unit * scale)
            # A sum that passes through infinity in one order need not in another.
            good |= ~np.isfinite(scale)
    counts["results compared, " + kind] += 1
    if np.all(good):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.asarray(good))[0]) if good.shape else ()
    return "%s %s: element %s of %s%s: Tessera %r, XLA %r (%d differ)" % (
        kind, detail[:1], list(at), dtype, list(got.shape), expected[at], got[at], int(np.sum(~np.asarray(good))))


def run(folder, name, client, counts):
    """Runs a program and gives what is wrong."""
    case = Case(os.path.join(folder, name))
    if case.left_out:
        counts["programs left out: " + case.left_out] += 1
        return []
    try:
        results = execute(client, case)
    except Exception as error:  # XLA's errors have several classes
        return ["%s: XLA refuses: %s" % (name, str(error)[:600])]
    counts["programs run"] += 1
    found = [(i, differences(case, i, results, counts)) for i in range(len(results))]
    return ["%s, result %d: %s" % (name, i, difference) for i, difference in found if difference]


def serve(folder, names, out):
    """Runs programs one after the other and writes a line for each."""
    client = None if GOT else backend.get_backend("cpu")
    for name in names:
        counts = collections.Counter()
        failures = run(folder, name, client, counts)
        out.write(json.dumps([failures, counts]) + "\n")
        out.flush()


def from_child(folder, names):
    """What a process of its own says of each program, until it is done or dies; then how it ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            with os.fdopen(write, "w") as out:
                serve(folder, names, out)
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as lines:
        yield from (json.loads(line) for line in lines)
    yield os.waitpid(child, 0)[1]


def died(folder, name, status, counts):
    """XLA divides by zero itself when it folds a remainder or a quotient of integers by a constant 0."""
    module = open(os.path.join(folder, name) + ".mlir").read()
    integer = re.search(r"stablehlo\.(remainder|divide).*tensor<(\d+x)*u?i\d+>", module)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGFPE and integer:
        counts["programs at which XLA divides by zero"] += 1
        return []
    return ["%s: XLA's process ended with status %d" % (name, status)]


def main(folder, names):
    if not GOT:
        jax.config.update("jax_enable_x64", True)
    names = names or sorted(f[:-4] for f in os.listdir(folder) if f.endswith(".txt"))
    counts, failures, start, at = collections.Counter(), [], time.time(), 0
    while at < len(names):
        for answer in from_child(folder, names[at:]):
            if isinstance(answer, int) and at == len(names):
                break
            wrong, counted = (died(folder, names[at], answer, counts), {}) if isinstance(answer, int) else answer
            counts.update(counted)
            failures += wrong
            for text in wrong:
                print("  " + text, flush=True)
            at += 1
    for what in sorted(counts):
        print("%6d %s" % (counts[what], what))
    print("%s: %d programs, %d disagreements, %.0f s%s" % (
        "test-pjrt" if GOT else "test-xla", len(names), len(failures), time.time() - start,
        "" if GOT else ", jax " + jax.__version__))
    return 1 if failures or not counts["programs run"] else 0


if __name__ == "__main__":
    sys.exit(main(*(lambda args: (args[0], args[1:]))(sys.argv[2:] if GOT else sys.argv[1:])))
