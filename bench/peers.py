#!/usr/bin/env python3
"""Time the peers of this project on the workloads that its own benchmark runs.

One workload is one name.  The project's benchmark (`make bench`) prints the
same names, so that both can be compared in one sitting on one machine:

    pip install jax numpy torch          # in a virtual environment
    python3 peers.py --peer jax --json jax.json
    python3 peers.py --list

Each figure is the minimum and the median wall time of one call in
milliseconds, inputs already on the device, result waited for.  Inputs are f32,
or c64 and integers that are made likewise, and come from `data`, a closed form
that any language can reproduce bit by bit.  "first-call extra" is what the
first call costs beyond a warm one: tracing, compiling, first allocations.
"""
import argparse
import json
import os
import statistics
import sys
import time

import numpy as np


def hash32(n, seed):
    """The murmur3 finalizer of i + seed * 0x9E3779B9, as u32, for i < n."""
    h = np.arange(n, dtype=np.uint32) + np.uint32(seed * 0x9E3779B9 & 0xFFFFFFFF)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2AE35)
    return h ^ (h >> np.uint32(16))


def data(*shape, seed=1):
    """Values in [-1, 1): hash32 / 2^31 - 1, rounded to f32."""
    u = hash32(int(np.prod(shape)), seed)
    return (u.astype(np.float64) / 2.0**31 - 1.0).astype(np.float32).reshape(shape)


def complex_data(*shape, seed=1):
    """c64 with real parts of this seed and imaginary parts of the next."""
    return (data(*shape, seed=seed) + 1j * data(*shape, seed=seed + 1)).astype(np.complex64)


def index_data(n, bound, seed=1):
    """Indices in [0, bound): hash32 * bound / 2^32."""
    return ((hash32(n, seed).astype(np.uint64) * np.uint64(bound)) >> np.uint64(32)).astype(np.int32)


def wide_data(n, seed=1):
    """s64 of two hashes: hash32 * 2^31 xor the next seed's hash32."""
    return hash32(n, seed).astype(np.int64) << 31 ^ hash32(n, seed + 1).astype(np.int64)


def spd(*dims):
    """Positive definite matrices in the last two of dims; the last of them is given once."""
    a = data(*dims, dims[-1], seed=5)
    return (a @ a.swapaxes(-1, -2) + dims[-1] * np.eye(dims[-1], dtype=np.float32)).astype(np.float32)


M = 1 << 20

# name -> (inputs, function of (module adapter P, *inputs))
W = {}


def workload(name, *inputs):
    def deco(f):
        W[name] = (inputs, f)
        return f
    return deco


# ---- elementwise and fusion ------------------------------------------------
workload("add_16m", data(16 * M), data(16 * M, seed=2))(lambda P, a, b: a + b)


@workload("chain_8m", data(8 * M))
def _(P, x):
    return P.sigmoid(P.tanh(x * 2.0 + 1.0) * x - P.exp(-x * x))


@workload("black_scholes_4m", data(4 * M), data(4 * M, seed=2), data(4 * M, seed=3))
def _(P, a, b, c):
    s, k, t = 100.0 + 50.0 * a, 100.0 + 50.0 * b, 1.5 + c
    r, v = 0.05, 0.2
    d1 = (P.log(s / k) + (r + v * v / 2) * t) / (v * P.sqrt(t))
    d2 = d1 - v * P.sqrt(t)
    n = lambda x: 0.5 * (1.0 + P.erf(x / 1.4142135))
    return s * n(d1) - k * P.exp(-r * t) * n(d2)


# ---- reductions ------------------------------------------------------------
workload("sum_16m", data(16 * M))(lambda P, x: P.sum(x))
workload("sum_rows_4096", data(4096, 4096))(lambda P, x: P.sum(x, 1))
workload("sum_cols_4096", data(4096, 4096))(lambda P, x: P.sum(x, 0))
workload("argmax_rows_4096", data(4096, 4096))(lambda P, x: P.argmax(x, 1))


@workload("softmax_4096x1024", data(4096, 1024))
def _(P, x):
    return P.softmax(x)


@workload("layernorm_4096x1024", data(4096, 1024), data(1024, seed=2), data(1024, seed=3))
def _(P, x, g, b):
    m = P.mean(x, 1, True)
    d = x - m
    v = P.mean(d * d, 1, True)
    return d / P.sqrt(v + 1e-5) * g + b


workload("cumsum_4096x1024", data(4096, 1024))(lambda P, x: P.cumsum(x, 1))

# ---- contraction -----------------------------------------------------------
for n in (64, 256, 1024, 2048):
    workload(f"matmul_{n}", data(n, n), data(n, n, seed=2))(lambda P, a, b: a @ b)
workload("matmul_batch_64x128", data(64, 128, 128), data(64, 128, 128, seed=2))(lambda P, a, b: a @ b)
workload("matvec_4096", data(4096, 4096), data(4096, seed=2))(lambda P, a, b: a @ b)


@workload("dense_relu_1024", data(1024, 1024), data(1024, 1024, seed=2), data(1024, seed=3))
def _(P, x, w, b):
    return P.relu(x @ w + b)


for rows in (1, 8, 32):
    workload(f"dense_relu_{rows}x1024", data(rows, 1024), data(1024, 1024, seed=2), data(1024, seed=3))(
        lambda P, x, w, b: P.relu(x @ w + b))


@workload("attention_8x512x64", data(8, 512, 64), data(8, 512, 64, seed=2), data(8, 512, 64, seed=3))
def _(P, q, k, v):
    return P.softmax(q @ P.swap_last(k) * 0.125) @ v


workload("conv2d_16x56x56x64_3x3", data(16, 56, 56, 64), data(3, 3, 64, 64, seed=2))(
    lambda P, x, w: P.conv2d(x, w))
workload("conv2d_1x224x224x3_7x7_s2", data(1, 224, 224, 3), data(7, 7, 3, 64, seed=2))(
    lambda P, x, w: P.conv2d(x, w, 2))
workload("depthwise_16x56x56x64_3x3", data(16, 56, 56, 64), data(3, 3, 1, 64, seed=2))(
    lambda P, x, w: P.depthwise(x, w))
workload("conv2d_grads_16x56x56x64_3x3", data(16, 56, 56, 64), data(3, 3, 64, 64, seed=2))(
    lambda P, x, w: P.squared_grads(P.conv2d, x, w))
workload("maxpool_16x112x112x64", data(16, 112, 112, 64))(lambda P, x: P.maxpool2(x))
workload("maxpool_grad_16x112x112x64", data(16, 112, 112, 64))(lambda P, x: P.squared_grads(P.maxpool2, x))

# ---- data movement ---------------------------------------------------------
workload("transpose_4096", data(4096, 4096))(lambda P, x: P.copy(P.swap_last(x)))
workload("concat_2x8m", data(2048, 4096), data(2048, 4096, seed=2))(lambda P, a, b: P.concat(a, b, 1))
workload("take_1m_of_100kx16", data(100_000, 16), index_data(M, 100_000))(lambda P, x, i: P.take(x, i))
workload("scatter_add_1m_into_100k", data(100_000), index_data(M, 100_000), data(M, seed=2))(
    lambda P, x, i, u: P.scatter_add(x, i, u))
workload("embedding_grad_100kx64", data(100_000, 64), index_data(100_000, 100_000))(
    lambda P, x, i: P.squared_grads(lambda rows: P.take(rows, i), x))
workload("put_100k_rows_of_64", data(100_000, 64), index_data(100_000, 100_000), data(100_000, 64, seed=2))(
    lambda P, x, i, u: P.put_rows(x, i, u))
workload("sort_1m", data(M))(lambda P, x: P.sort(x))
workload("argsort_1m", data(M))(lambda P, x: P.argsort(x))
workload("sort_rows_1000", data(1000, 1000))(lambda P, x: P.sort(x))
workload("sort_1m_s64", wide_data(M))(lambda P, x: P.sort(x))
for n in (16, 64):
    workload(f"sort_rows_{n}", data(M // n, n))(lambda P, x: P.sort(x))
    workload(f"argsort_rows_{n}", data(M // n, n))(lambda P, x: P.argsort(x))
workload("top_10_of_1m", data(M))(lambda P, x: P.top_k(x, 10))
workload("top_10_of_rows_1000", data(1000, 1000))(lambda P, x: P.top_k(x, 10))

# ---- linear algebra and transforms -----------------------------------------
workload("cholesky_512", spd(512))(lambda P, a: P.cholesky(a))
for count, rows in ((32768, 4), (8192, 8), (2048, 16), (512, 32)):
    workload(f"cholesky_{count}x{rows}", spd(count, rows))(lambda P, a: P.cholesky(a))
workload("triangular_solve_512", spd(512), data(512, 512, seed=2))(lambda P, a, b: P.triangular_solve(a, b))
workload("triangular_solve_8192x8", spd(8192, 8), data(8192, 8, 1, seed=2))(lambda P, a, b: P.triangular_solve(a, b))
workload("solve_512", spd(512), data(512, 8, seed=2))(lambda P, a, b: P.solve(a, b))
workload("qr_512", data(512, 512))(lambda P, a: P.qr(a))
workload("eigh_512", spd(512))(lambda P, a: P.eigh(a))
workload("svd_256", data(256, 256))(lambda P, a: P.svd(a))
workload("lu_512", data(512, 512))(lambda P, a: P.lu(a))
for count, rows in ((8192, 8), (2048, 16)):
    workload(f"solve_{count}x{rows}", spd(count, rows), data(count, rows, 1, seed=2))(lambda P, a, b: P.solve(a, b))
    workload(f"qr_{count}x{rows}", data(count, rows, rows))(lambda P, a: P.qr(a))
    workload(f"eigh_{count}x{rows}", spd(count, rows))(lambda P, a: P.eigh(a))
    workload(f"svd_{count}x{rows}", data(count, rows, rows))(lambda P, a: P.svd(a))
for n in (1024, 1000, 1021):  # a power of 2, small factors, a prime
    workload(f"fft_{n}x{n}", data(n, n))(lambda P, x: P.fft(x))
workload("fft2_1024", data(1024, 1024))(lambda P, x: P.fft2(x))

# ---- complex numbers -------------------------------------------------------
workload("complex_matmul_512", complex_data(512, 512), complex_data(512, 512, seed=3))(lambda P, a, b: a @ b)
workload("complex_multiply_4m", complex_data(4 * M), complex_data(4 * M, seed=3))(lambda P, a, b: a * b)
workload("complex_chain_1m", complex_data(M), complex_data(M, seed=3))(
    lambda P, a, b: P.exp(a * b) * a - b / (a + 2.0))

# ---- control flow, random numbers, overhead ---------------------------------
workload("while_100k", np.float32(1.0))(lambda P, x: P.loop(100_000, x))
workload("random_normal_4m")(lambda P: P.normal(4 * M))
workload("call_overhead_scalar", np.float32(1.0))(lambda P, x: x + 1.0)


# ---- a training step ---------------------------------------------------------
def mlp_params():
    return (data(784, 512, seed=2) * 0.05, data(512, seed=3) * 0.01,
            data(512, 512, seed=4) * 0.05, data(512, seed=5) * 0.01,
            data(512, 10, seed=6) * 0.05, data(10, seed=7) * 0.01)


def onehot():
    y = np.zeros((256, 10), np.float32)
    y[np.arange(256), index_data(256, 10, seed=8)] = 1
    return y


@workload("mlp_train_256", data(256, 784), onehot(), *mlp_params())
def _(P, x, y, *p):
    def loss(x, y, w1, b1, w2, b2, w3, b3):
        h = P.relu(x @ w1 + b1)
        h = P.relu(h @ w2 + b2)
        z = h @ w3 + b3
        z = z - P.logsumexp(z)
        return -P.sum(y * z) / 256.0
    return P.sgd(loss, x, y, p, 0.01)


# ---- convolutional networks ---------------------------------------------------
def one_hot(n, seed):
    y = np.zeros((n, 10), np.float32)
    y[np.arange(n), index_data(n, 10, seed=seed)] = 1
    return y


LENET = (data(5, 5, 1, 6, seed=2) * 0.2, data(6, seed=3) * 0.01, data(5, 5, 6, 16, seed=4) * 0.1, data(16, seed=5) * 0.01,
         data(784, 120, seed=6) * 0.05, data(120, seed=7) * 0.01, data(120, 84, seed=8) * 0.1, data(84, seed=9) * 0.01,
         data(84, 10, seed=10) * 0.1, data(10, seed=11) * 0.01)
LENET = tuple(np.float32(p) for p in LENET)
BLOCK = (data(3, 3, 64, 64, seed=2) * 0.05, data(64, seed=3), data(64, seed=4) * 0.1,
         data(3, 3, 64, 64, seed=5) * 0.05, data(64, seed=6), data(64, seed=7) * 0.1)
BLOCK = tuple(np.float32(p) for p in BLOCK)


def lenet(P, x, k1, b1, k2, b2, w3, b3, w4, b4, w5, b5):
    x = P.maps_max2(P.relu(P.maps_conv(x, k1) + b1))
    x = P.maps_max2(P.relu(P.maps_conv(x, k2) + b2))
    x = P.relu(x.reshape(128, 784) @ w3 + b3)
    return P.relu(x @ w4 + b4) @ w5 + b5


def lenet_loss(P, x, y, *p):
    z = lenet(P, x, *p)
    return -P.sum(y * (z - P.logsumexp(z))) / 128.0


def block(P, normalised, x, k1, g1, b1, k2, g2, b2):
    h = P.relu(normalised(P.maps_conv(x, k1)) * g1 + b1)
    return P.relu(x + (normalised(P.maps_conv(h, k2)) * g2 + b2))


def block_loss(P, x, _, *p):
    def normalised(z):  # by the statistics of the batch
        d = z - P.mean(z, (0, 1, 2), True)
        return d / P.sqrt(P.mean(d * d, (0, 1, 2), True) + 1e-5)
    y = block(P, normalised, x, *p)
    return P.sum(y * y) / y.reshape(-1).shape[0]


workload("lenet_forward_128", data(128, 28, 28, 1), *LENET)(lambda P, x, *p: lenet(P, x, *p))
workload("lenet_train_128", data(128, 28, 28, 1), one_hot(128, 12), *LENET)(
    lambda P, x, y, *p: P.sgd(lambda *a: lenet_loss(P, *a), x, y, p, 0.01))
workload("resnet_block_forward", data(8, 56, 56, 64), *BLOCK)(lambda P, x, *p: block(P, lambda z: z, x, *p))
workload("resnet_block_train", data(8, 56, 56, 64), *BLOCK)(
    lambda P, x, *p: P.sgd(lambda *a: block_loss(P, *a), x, x, p, 0.01))


# ---- adapters -----------------------------------------------------------------
class Jax:
    def __init__(self):
        import jax, jax.numpy as jnp
        self.jax, self.jnp = jax, jnp
        for f in ("tanh", "exp", "log", "sqrt", "sum", "argmax", "cumsum", "sort", "argsort"):
            setattr(self, f, getattr(jnp, f))
        self.sigmoid, self.erf = jax.nn.sigmoid, jax.lax.erf
        self.relu = lambda x: jnp.maximum(x, 0)
        self.cholesky, self.qr, self.eigh = jnp.linalg.cholesky, jnp.linalg.qr, jnp.linalg.eigh
        self.svd, self.solve, self.fft, self.fft2 = jnp.linalg.svd, jnp.linalg.solve, jnp.fft.fft, jnp.fft.fft2
        from jax.scipy.linalg import lu
        self.lu = lu
        self.triangular_solve = lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)

    def mean(self, x, a, k=False): return self.jnp.mean(x, a, keepdims=k)
    def softmax(self, x): return self.jax.nn.softmax(x, axis=-1)
    def logsumexp(self, x): return self.jax.nn.logsumexp(x, axis=-1, keepdims=True)
    def swap_last(self, x): return self.jnp.swapaxes(x, -1, -2)
    def copy(self, x): return self.jnp.copy(x)
    def concat(self, a, b, ax): return self.jnp.concatenate((a, b), ax)
    def take(self, x, i): return self.jnp.take(x, i, axis=0)
    def scatter_add(self, x, i, u): return x.at[i].add(u)
    def put_rows(self, x, i, u): return x.at[i].set(u)
    def top_k(self, x, k): return self.jax.lax.top_k(x, k)
    def maxpool2(self, x): return self.jax.lax.reduce_window(x, -np.inf, self.jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def conv2d(self, x, w, s=1):
        return self.jax.lax.conv_general_dilated(x, w, (s, s), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    maps_conv, maps_max2 = conv2d, maxpool2  # from channels last to channels last

    def depthwise(self, x, w):
        return self.jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                                 feature_group_count=w.shape[3])

    def squared_grads(self, f, *args):
        return self.jax.grad(lambda *a: (f(*a) ** 2).sum(), tuple(range(len(args))))(*args)

    def loop(self, n, x):
        return self.jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.999 + 0.001), (0, x))[1]

    def normal(self, n): return self.jax.random.normal(self.jax.random.key(42), (n,))

    def sgd(self, loss, x, y, p, lr):
        l, g = self.jax.value_and_grad(lambda p: loss(x, y, *p))(p)
        return l, tuple(a - lr * b for a, b in zip(p, g))

    def put(self, x): return self.jnp.asarray(x)
    def build(self, f): return self.jax.jit(f)
    def wait(self, r): self.jax.block_until_ready(r)


class Torch:
    def __init__(self, compiled=False):
        import torch
        self.t, self.compiled = torch, compiled
        for f in ("sigmoid", "tanh", "exp", "log", "sqrt", "erf", "relu", "sum", "argmax", "cumsum", "mean"):
            setattr(self, f, getattr(torch, f))
        L = torch.linalg
        self.cholesky, self.qr, self.eigh, self.svd, self.solve, self.fft = L.cholesky, L.qr, L.eigh, L.svd, L.solve, torch.fft.fft
        self.lu, self.fft2 = L.lu, torch.fft.fft2
        self.triangular_solve = lambda a, b: L.solve_triangular(a, b, upper=False)

    def softmax(self, x): return self.t.softmax(x, -1)
    def logsumexp(self, x): return self.t.logsumexp(x, -1, True)
    def swap_last(self, x): return x.transpose(-1, -2)
    def copy(self, x): return x.contiguous()
    def concat(self, a, b, ax): return self.t.cat((a, b), ax)
    def take(self, x, i): return x[i.long()] if i.dtype != self.t.int32 else self.t.index_select(x, 0, i)
    def scatter_add(self, x, i, u): return x.index_add(0, i, u)
    def put_rows(self, x, i, u): return x.index_put((i,), u)
    def top_k(self, x, k): return self.t.topk(x, k)
    def sort(self, x): return self.t.sort(x, -1)[0]
    def argsort(self, x): return self.t.sort(x, -1)[1]

    def maxpool2(self, x):
        return self.t.nn.functional.max_pool2d(x.permute(0, 3, 1, 2), 2)

    def conv2d(self, x, w, s=1):
        p = (w.shape[0] - 1) // 2
        return self.t.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), stride=s, padding=p)

    def maps_conv(self, x, w): return self.conv2d(x, w).permute(0, 2, 3, 1)
    def maps_max2(self, x): return self.maxpool2(x).permute(0, 2, 3, 1)

    def depthwise(self, x, w):
        return self.t.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1, groups=w.shape[3])

    def squared_grads(self, f, *args):
        args = [a.detach().requires_grad_(True) for a in args]
        (f(*args) ** 2).sum().backward()
        return tuple(a.grad for a in args)

    def loop(self, n, x):
        for _ in range(n):
            x = x * 0.999 + 0.001
        return x

    def normal(self, n): return self.t.randn(n)

    def sgd(self, loss, x, y, p, lr):
        p = [a.detach().requires_grad_(True) for a in p]
        l = loss(x, y, *p)
        l.backward()
        with self.t.no_grad():
            return l, tuple(a - lr * a.grad for a in p)

    def put(self, x): return self.t.from_numpy(np.ascontiguousarray(x)) if isinstance(x, np.ndarray) else self.t.tensor(x)
    def build(self, f):
        if not self.compiled:
            return f
        self.t._dynamo.reset()
        return self.t.compile(f)
    def wait(self, r): return r


class Numpy:
    def __init__(self):
        for f in ("tanh", "exp", "log", "sqrt", "sum", "argmax", "cumsum", "sort", "argsort"):
            setattr(self, f, getattr(np, f))
        L = np.linalg
        self.cholesky, self.qr, self.eigh, self.svd, self.solve, self.fft = L.cholesky, L.qr, L.eigh, L.svd, L.solve, np.fft.fft
        from scipy.special import erf
        self.erf = erf

        from scipy.linalg import lu, solve_triangular
        self.lu, self.fft2 = lu, np.fft.fft2
        self.triangular_solve = lambda a, b: solve_triangular(a, b, lower=True)

    def sigmoid(self, x): return 1 / (1 + np.exp(-x))
    def relu(self, x): return np.maximum(x, 0)
    def mean(self, x, a, k=False): return np.mean(x, axis=a, keepdims=k)

    def softmax(self, x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def swap_last(self, x): return np.swapaxes(x, -1, -2)
    def copy(self, x): return np.ascontiguousarray(x)
    def concat(self, a, b, ax): return np.concatenate((a, b), ax)
    def take(self, x, i): return np.take(x, i, axis=0)

    def top_k(self, x, k):
        best = np.argpartition(x, -k, axis=-1)[..., -k:]
        order = np.argsort(-np.take_along_axis(x, best, -1), axis=-1)
        best = np.take_along_axis(best, order, -1)
        return np.take_along_axis(x, best, -1), best


    def scatter_add(self, x, i, u):
        r = x.copy()
        np.add.at(r, i, u)
        return r

    def put_rows(self, x, i, u):
        r = x.copy()
        r[i] = u
        return r

    def normal(self, n): return np.random.default_rng(42).standard_normal(n, dtype=np.float32)
    def put(self, x): return x
    def build(self, f): return f
    def wait(self, r): return r


# What a compiler only calls.
LIBRARY = ("cholesky_512", "solve_", "qr_", "lu_", "eigh_", "svd_", "fft", "complex_matmul_512")
PEERS = {"jax": Jax, "torch": Torch, "torch_compile": lambda: Torch(True), "numpy": Numpy}
SKIP = {"numpy": {"conv2d_16x56x56x64_3x3", "conv2d_1x224x224x3_7x7_s2", "depthwise_16x56x56x64_3x3",
                  "conv2d_grads_16x56x56x64_3x3", "maxpool_16x112x112x64", "maxpool_grad_16x112x112x64",
                  "embedding_grad_100kx64", "while_100k", "mlp_train_256", "triangular_solve_8192x8", "lenet_forward_128",
                  "lenet_train_128", "resnet_block_forward", "resnet_block_train"},
        "torch_compile": {"while_100k",
                          "random_normal_4m"} | {n for n in W if n.startswith(LIBRARY)},
        "torch": set(), "jax": {"sort_1m_s64"}}  # jax makes s32 of s64


def measure(call, budget_s):
    for _ in range(2):
        call()
    times, end = [], time.perf_counter() + budget_s
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 2000):
        t = time.perf_counter()
        call()
        times.append((time.perf_counter() - t) * 1e3)
    return min(times), statistics.median(times)


def run(P, name, budget):
    """Minimum, median and first-call extra of one workload, in ms."""
    inputs, f = W[name]
    args = [P.put(x) for x in inputs]
    t = time.perf_counter()
    fn = P.build(lambda *xs: f(P, *xs))
    P.wait(fn(*args))
    first = (time.perf_counter() - t) * 1e3
    lo, med = measure(lambda: P.wait(fn(*args)), budget)
    return lo, med, max(first - med, 0.0)


def serve(o):
    """Names on standard input, a line of figures for each: what `make bench` talks to."""
    P = PEERS[o.peer]()
    print("ready", flush=True)
    for line in sys.stdin:
        name = line.strip()
        try:
            if name in SKIP[o.peer]:
                raise NotImplementedError("not run")
            answer = "ok %.6f %.6f %.6f" % run(P, name, o.budget)
        except Exception as e:
            answer = f"failed {type(e).__name__}: {str(e)[:80]}".replace("\n", " ")
        print(answer, flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--peer", choices=PEERS)
    a.add_argument("--only", default="")
    a.add_argument("--budget", type=float, default=1.0, help="seconds of timing for each workload")
    a.add_argument("--json")
    a.add_argument("--serve", action="store_true", help="take names from standard input")
    a.add_argument("--list", action="store_true")
    o = a.parse_args()
    if o.list or not o.peer:
        print("\n".join(f"{n:28s} {' '.join('x'.join(map(str, np.shape(i))) or 'scalar' for i in ins)}" for n, (ins, _) in W.items()))
        return
    if o.serve:
        return serve(o)
    P, out = PEERS[o.peer](), {}
    for name in W:
        if (o.only and not any(s in name for s in o.only.split(","))) or name in SKIP[o.peer]:
            continue
        try:
            lo, med, extra = run(P, name, o.budget)
        except Exception as e:  # a peer that lacks the workload is reported, not hidden
            print(f"{name:28s} failed: {type(e).__name__}: {str(e)[:80]}", flush=True)
            continue
        out[name] = {"min_ms": lo, "median_ms": med, "compile_ms": extra}
        print(f"{name:28s} min {lo:10.4f}  median {med:10.4f}  first-call extra {extra:9.1f} ms", flush=True)
    if o.json:
        json.dump({"peer": o.peer, "cpus": os.cpu_count(), "workloads": out}, open(o.json, "w"), indent=1)


if __name__ == "__main__":
    sys.exit(main())
