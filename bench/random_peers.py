#!/usr/bin/env python3
"""Run drawn workloads in one peer, for `make bench-random` (tessera_random_bench.erl), and compare the results.

    python3 random_peers.py jax|torch|numpy

A line on standard input is a workload in JSON: the files of the inputs and of Tessera's results, the program as StableHLO and as
text. The answer is a line: `ok MINIMUM MEDIAN ERROR TEXT`, or `failed` and why. ERROR is the largest difference by what the rule
allows, so more than 1 is a disagreement, and TEXT says where. The rules, with eps of the type of the result:

exact   equal; any NaN is any other
near    units * eps * |expected|, or units * eps * 2^-4 where the result is less than that
mixed   units * eps * the largest |expected| (products, sums, transforms: an element is made of many)
absent  not compared
"""
import json
import os
import statistics
import sys
import time

import numpy as np
import ml_dtypes

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
          **{k + b: np.dtype(n + b) for k, n in (("s", "int"), ("u", "uint")) for b in ("8", "16", "32", "64")}}
EPS = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23, "c128": 2.0**-52}
TINY = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022, "c64": 2.0**-126, "c128": 2.0**-1022}


# ---- comparison ----
def parts(a):
    return (a.real, a.imag) if np.iscomplexobj(a) else (a,)


def wide(a):
    return a.astype(np.complex128) if np.iscomplexobj(a) else a.astype(np.float64)


def allowed(name, expected, rule, units):
    if rule == "exact":
        return 0.0
    size = np.abs(wide(expected))
    if rule == "mixed":
        return units * EPS[name] * np.max(size[np.isfinite(size)], initial=0.0) + TINY[name]
    return units * EPS[name] * np.maximum(size, 2.0**-4) + TINY[name]


def differ(name, ours, theirs, rule, units):
    """The largest difference by what is allowed, and where."""
    if rule == "absent":
        return 0.0, "-"
    if ours.shape != theirs.shape:
        return np.inf, "shape %s, %s" % (ours.shape, theirs.shape)
    if rule == "exact" or name not in EPS:
        same = ours == theirs
        if name in EPS:
            same |= (ours != ours) & (theirs != theirs)
        wrong = np.where(same, 0.0, np.inf)
    else:
        with np.errstate(all="ignore"):
            bound = allowed(name, theirs, rule, units)
            finite = np.isfinite(ours) & np.isfinite(theirs)
            distance = np.abs(wide(ours) - wide(theirs)) / bound
            same = ours == theirs
            for a, b in zip(parts(ours), parts(theirs)):  # a NaN of one part is a NaN
                same |= (a != a) & (b != b)
            wrong = np.where(same, 0.0, np.where(finite, distance, np.inf))
    if wrong.size == 0:
        return 0.0, "-"
    at = np.unravel_index(np.argmax(wrong), wrong.shape)
    text = "%d differ, at %s %r is %r" % (np.sum(wrong > 1), "x".join(str(int(i)) for i in at), ours[at].item(), theirs[at].item())
    return float(wrong[at]), text


# ---- adapters: what the texts call ----
class Numpy:
    def __init__(self):
        for f in ("exp expm1 log log1p cos sin tan tanh sinh sqrt abs negative floor sign maximum minimum where argmax argmin concatenate real "
                  "matmul").split():
            setattr(self, f, getattr(np, f))
        import scipy.special
        import scipy.linalg
        self.scipy = scipy
        self.erf, self.erfc, self.sigmoid = scipy.special.erf, scipy.special.erfc, scipy.special.expit
        self.asin, self.atan, self.atan2, self.round, self.negate, self.permute = np.arcsin, np.arctan, np.arctan2, None, np.negative, np.transpose
        self.cholesky, self.eigenvalues, self.inverse = np.linalg.cholesky, np.linalg.eigvalsh, np.linalg.inv

    generator = np.random.default_rng(7)
    def uniform(self, shape, name): return self.generator.random(shape, dtype=DTYPES[name])
    def normal(self, shape, name): return self.generator.standard_normal(shape, dtype=DTYPES[name])
    def randint(self, shape, name): return self.generator.integers(0, 1000, shape, dtype=DTYPES[name])
    def rsqrt(self, x): return 1 / np.sqrt(x)
    def relu(self, x): return np.maximum(x, 0)
    def cast(self, x, name): return x.astype(DTYPES[name])
    def sum(self, x, axes): return np.sum(x, axes, dtype=x.dtype)
    def mean(self, x, axes): return np.mean(x, axes)
    def max(self, x, axes): return np.max(x, axes)
    def min(self, x, axes): return np.min(x, axes)
    def variance(self, x, axis): return np.var(x, axis)

    def softmax(self, x, axis):
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    def logsumexp(self, x, axis):
        m = x.max(axis, keepdims=True)
        return np.squeeze(np.log(np.exp(x - m).sum(axis, keepdims=True)) + m, axis)

    def normalised(self, x, axis):
        d = x - x.mean(axis, keepdims=True)
        return d / np.sqrt((d * d).mean(axis, keepdims=True) + np.asarray(0.0078125, x.dtype))

    def cumulative_sum(self, x, axis): return np.cumsum(x, axis, dtype=x.dtype)
    def cumulative_max(self, x, axis): return np.maximum.accumulate(x, axis)
    def sort(self, x, axis): return np.sort(x, axis)
    def argsort(self, x, axis): return np.argsort(x, axis, kind="stable")
    def top_k(self, x, k): return np.flip(np.sort(np.partition(x, -k, axis=-1)[..., -k:], axis=-1), -1)
    def take(self, x, i, axis): return np.take(x, i, axis=axis)

    def index_add(self, x, i, u):
        r = np.array(x)
        np.add.at(r, i, u)
        return r

    def copy(self, x): return np.array(x, order="C")
    def reverse(self, x, axis): return np.ascontiguousarray(np.flip(x, axis))
    def reversed_axes(self, x): return np.transpose(x)
    def roll(self, x, n, axis): return np.ascontiguousarray(np.roll(x, n, axis))  # else in its operand's order

    def pad(self, x, axis, low, high, inner):
        n = x.shape[axis]
        shape = list(x.shape)
        shape[axis] = low + high + n + (n - 1) * inner
        r = np.zeros(shape, x.dtype)
        r[(slice(None),) * axis + (slice(low, low + n + (n - 1) * inner, inner + 1),)] = x
        return r

    def triangular_solve(self, a, b): return self.scipy.linalg.solve_triangular(a, b, lower=True)
    def solve(self, a, b): return np.linalg.solve(a, b)
    def triangle(self, a): return np.abs(np.linalg.qr(a)[1])
    def singular_values(self, a): return np.linalg.svd(a)[1]
    def fft(self, x): return np.fft.fft(x)
    def ifft(self, x): return np.fft.ifft(x)
    def rfft(self, x): return np.fft.rfft(x)

    def loop(self, x, times):
        half, quarter = np.asarray(0.5, x.dtype), np.asarray(0.25, x.dtype)
        for _ in range(times):
            x = np.tanh(x) * half + quarter
        return x

    def put(self, x, name):
        if name == "bf16":
            raise NotImplementedError("no bf16")
        return x

    def get(self, r): return np.asarray(r)
    def build(self, work): return lambda *x: eval(work["text"], {"P": self}, {"x%d" % i: a for i, a in enumerate(x)})
    def compiled(self, work): return self.by_text(work)
    def wait(self, r): return r

    def by_text(self, work):
        names = ["x%d" % i for i in range(len(work["inputs"]))]
        return eval("lambda %s: %s" % (",".join(names), work["text"]), {"P": self})


class Torch(Numpy):
    def __init__(self):
        import torch
        self.t = t = torch
        for f in ("exp expm1 log log1p sigmoid cos sin tan tanh sinh sqrt rsqrt erf erfc abs floor sign maximum minimum where real relu matmul "
                  "argmax argmin permute asin atan atan2").split():
            setattr(self, f, getattr(t, f))
        self.negate, self.concatenate, self.round = t.neg, t.cat, None  # to the even number at ties
        L = t.linalg
        self.cholesky, self.eigenvalues, self.inverse, self.solve, self.singular_values = L.cholesky, L.eigvalsh, L.inv, L.solve, lambda a: L.svd(a)[1]
        self.fft, self.ifft, self.rfft = t.fft.fft, t.fft.ifft, t.fft.rfft
        self.types = {"f16": t.float16, "bf16": t.bfloat16, "f32": t.float32, "f64": t.float64, "s8": t.int8, "s16": t.int16, "s32": t.int32, "s64": t.int64,
                      "u8": t.uint8}

    def uniform(self, shape, name): return self.t.rand(shape, dtype=self.types[name])
    def normal(self, shape, name): return self.t.randn(shape, dtype=self.types[name])
    def randint(self, shape, name): return self.t.randint(0, 1000, shape, dtype=self.types[name])
    def cast(self, x, name): return x.to(self.types[name])
    def sum(self, x, axes): return x.sum(axes, dtype=x.dtype)
    def mean(self, x, axes): return x.mean(axes)
    def max(self, x, axes): return x.amax(axes)
    def min(self, x, axes): return x.amin(axes)
    def variance(self, x, axis): return x.var(axis, unbiased=False)
    def softmax(self, x, axis): return x.softmax(axis)
    def logsumexp(self, x, axis): return x.logsumexp(axis)

    def normalised(self, x, axis):
        d = x - x.mean(axis, keepdim=True)
        return d / ((d * d).mean(axis, keepdim=True) + 0.0078125).sqrt()

    def cumulative_sum(self, x, axis): return x.cumsum(axis, dtype=x.dtype)
    def cumulative_max(self, x, axis): return x.cummax(axis)[0]
    def sort(self, x, axis): return x.sort(axis)[0]
    def argsort(self, x, axis): return x.argsort(axis, stable=True)
    def top_k(self, x, k): return x.topk(k)[0]
    def take(self, x, i, axis): return x.index_select(axis, i)
    def index_add(self, x, i, u): return x.index_add(0, i, u)
    def copy(self, x): return x.clone(memory_format=self.t.contiguous_format)
    def reverse(self, x, axis): return x.flip(axis)
    def reversed_axes(self, x): return x.permute(*reversed(range(x.dim())))

    def pad(self, x, axis, low, high, inner):
        n = x.shape[axis]
        shape = list(x.shape)
        shape[axis] = low + high + n + (n - 1) * inner
        r = self.t.zeros(shape, dtype=x.dtype)
        r[(slice(None),) * axis + (slice(low, low + n + (n - 1) * inner, inner + 1),)] = x
        return r

    def roll(self, x, n, axis): return x.roll(n, axis)

    def conv(self, x, w, stride, pads, groups):
        dims = x.dim() - 2
        f = (self.t.nn.functional.conv1d, self.t.nn.functional.conv2d, self.t.nn.functional.conv3d)[dims - 1]
        x, w = x.movedim(-1, 1), w.permute(-1, -2, *range(dims))
        if any(a != b for a, b in pads):
            x, pads = self.t.nn.functional.pad(x, [p for a in reversed(pads) for p in a]), [(0, 0)] * dims
        return f(x, w, stride=stride, padding=[a for a, _ in pads], groups=groups).movedim(1, -1)

    def pool(self, name, x, sizes, stride):
        f = getattr(self.t.nn.functional, "%s_pool%dd" % (name, len(sizes)))
        return f(x.movedim(-1, 1), sizes, stride).movedim(1, -1)

    def window_max(self, x, sizes, stride): return self.pool("max", x, sizes, stride)
    def window_mean(self, x, sizes, stride): return self.pool("avg", x, sizes, stride)

    def triangular_solve(self, a, b): return self.t.linalg.solve_triangular(a, b, upper=False)
    def triangle(self, a): return self.t.linalg.qr(a)[1].abs()

    def loop(self, x, times):
        for _ in range(times):
            x = x.tanh() * 0.5 + 0.25
        return x

    def put(self, x, name):
        if name in ("u16", "u32", "u64"):
            raise NotImplementedError("few ops of " + name)
        return self.t.from_numpy(x.view(np.int16)).view(self.t.bfloat16) if name == "bf16" else self.t.from_numpy(x)

    def get(self, r):
        r = r.contiguous()
        return r.view(self.t.int16).numpy().view(ml_dtypes.bfloat16) if r.dtype == self.t.bfloat16 else r.resolve_conj().resolve_neg().numpy()


class Jax:
    """XLA: the StableHLO of the program, or a text where it has an op that StableHLO lacks."""

    def __init__(self):
        import jax
        import jax.numpy as jnp
        from jax._src.interpreters import mlir
        from jax._src.lib.mlir import ir
        from jax.extend import backend
        from jaxlib import _jax, xla_client
        jax.config.update("jax_enable_x64", True)
        self.jax, self.jnp, self.mlir, self.ir, self._jax, self.xla = jax, jnp, mlir, ir, _jax, xla_client
        self.client = backend.get_backend("cpu")
        L = jnp.linalg
        self.cholesky, self.eigenvalues, self.inverse, self.solve = L.cholesky, L.eigvalsh, L.inv, L.solve
        self.singular_values = lambda a: L.svd(a)[1]

    def triangular_solve(self, a, b): return self.jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
    def triangle(self, a): return self.jnp.abs(self.jnp.linalg.qr(a)[1])

    def module(self, work, exact):
        options = self.xla.CompileOptions()
        if exact:  # otherwise a value between two ops of 16 bits is not rounded to 16 bits
            options.env_option_overrides = [("xla_allow_excess_precision", False)]
        with self.mlir.make_ir_context():
            module = self.ir.Module.parse(open(work["module"]).read())
            devices = self._jax.DeviceList(tuple(self.client.local_devices()[:1]))
            built = self.client.compile_and_load(module, devices, options)
        return lambda *x: built.execute_sharded(list(x)).disassemble_into_single_device_arrays()

    def build(self, work, exact=False):
        if work["by_text"]:
            names = ["x%d" % i for i in range(len(work["inputs"]))]
            return self.jax.jit(eval("lambda %s: %s" % (",".join(names), work["text"]), {"P": self}))
        return self.module(work, exact)

    def by_text(self, work): return self.build(work)
    def put(self, x, name): return self.jax.device_put(x)
    def wait(self, r): return self.jax.block_until_ready(r)

    def get(self, r):
        while isinstance(r, (list, tuple)):
            r = r[0]
        return np.asarray(r)


PEERS = {"jax": Jax, "torch": Torch, "numpy": Numpy}


# ---- a workload ----
def read(spec):
    return np.fromfile(spec["file"], DTYPES[spec["type"]]).reshape(spec["shape"])


def measure(call, budget):
    """Minimum and median in ms; a call that is short is repeated."""
    t = time.perf_counter()
    call()
    once = time.perf_counter() - t
    times, end = [], time.perf_counter() + budget
    while len(times) < 2 or (time.perf_counter() < end and len(times) < 20000):
        t = time.perf_counter()
        call()
        times.append((time.perf_counter() - t) * 1e3)
        if once > 2.0:
            break
    return min(times), statistics.median(times)


def narrow(work):
    return any(i["type"] in ("f16", "bf16") for i in work["inputs"]) or work["result"]["type"] in ("f16", "bf16")


def run(P, work):
    args = [P.put(read(i), i["type"]) for i in work["inputs"]]
    f = P.by_text(work)
    result = P.get(P.wait(f(*args)))
    checked = P.get(P.wait(P.build(work, True)(*args))) if isinstance(P, Jax) and narrow(work) else result
    error, text = differ(work["result"]["type"], read(work["result"]), checked.reshape(np.shape(checked)), work["rule"], work["units"])
    low, median = measure(lambda: P.wait(f(*args)), work["budget"]) if work["budget"] > 0 else (0.0, 0.0)
    return "ok %.6f %.6f %.4g %s" % (low, median, error, text)


def main():
    P = PEERS[sys.argv[1]]()
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            with np.errstate(all="ignore"):
                answer = run(P, json.loads(line))
        except Exception as e:
            answer = "failed %s: %s" % (type(e).__name__, str(e)[:200])
        print(answer.replace("\n", " "), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.exit(main())
