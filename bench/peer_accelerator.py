"""The programs of tessera_accelerator.erl by JAX, on its plugin.

    pip install jax[cuda13] && python3 peer_accelerator.py
"""
import contextlib
import time
import jax
import jax.numpy as jnp

ROUNDS = 30


def precision(name):
    """Products of f32 are in f32, as tessera_accelerator.erl asks, or as JAX's default has them for names that end so. bf16 is JAX's default."""
    return contextlib.nullcontext() if name.endswith("_fast") or "bf16" in name else jax.default_matmul_precision("highest")


def made(shape, dtype=jnp.float32):
    n = 1
    for d in shape:
        n *= d
    return jax.device_put(((jnp.arange(n) % 1009) / 1009.0).reshape(shape).astype(dtype))


def attention(q, k, v):
    s = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125)
    return jnp.einsum("bhqk,bhkd->bhqd", s, v)


def mlp(x, w1, w2):
    return jnp.maximum(x @ w1, 0) @ w2


def loss(w, x):
    return mlp(x, *w).sum()


def conv(x, k):
    return jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


B = jnp.bfloat16
WORKLOADS = [
    ("scalar", lambda x: x + 1, lambda: [made(())]),
    ("chain_16m", lambda x: jnp.tanh(x * 2 + 1) * x, lambda: [made((16777216,))]),
    ("sum_64m", jnp.sum, lambda: [made((67108864,))]),
    ("softmax_8192", jax.nn.softmax, lambda: [made((8192, 8192))]),
    ("matmul_4096_f32", jnp.matmul, lambda: [made((4096, 4096))] * 2),
    ("matmul_4096_f32_fast", jnp.matmul, lambda: [made((4096, 4096))] * 2),
    ("matmul_4096_bf16", jnp.matmul, lambda: [made((4096, 4096), B)] * 2),
    ("attention_8x16x1024x64_bf16", attention, lambda: [made((8, 16, 1024, 64), B)] * 3),
    ("mlp_1024_4096_bf16", mlp, lambda: [made((1024, 4096), B), made((4096, 4096), B), made((4096, 4096), B)]),
    ("mlp_gradient_1024_bf16", lambda w1, w2, x: jax.grad(loss)((w1, w2), x),
     lambda: [made((4096, 4096), B), made((4096, 4096), B), made((1024, 4096), B)]),
    ("conv_32x56x56x64", conv, lambda: [made((32, 56, 56, 64)), made((3, 3, 64, 64))]),
    ("conv_32x56x56x64_fast", conv, lambda: [made((32, 56, 56, 64)), made((3, 3, 64, 64))]),
    ("conv_32x56x56x64_bf16", conv, lambda: [made((32, 56, 56, 64), B), made((3, 3, 64, 64), B)]),
    ("sort_4m", jnp.sort, lambda: [made((4194304,))]),
    ("argsort_4m", jnp.argsort, lambda: [made((4194304,))]),
    ("fft_1024x4096", jnp.fft.fft, lambda: [made((1024, 4096), jnp.complex64)]),
    ("cumulative_sum_16m", jnp.cumsum, lambda: [made((16777216,))]),
    ("while_1000", lambda x: jax.lax.while_loop(lambda c: c[1] < 1000, lambda c: (jnp.sin(c[0]), c[1] + 1), (x, 0))[0], lambda: [made((1024,))]),
]


def measure(name, f, args):
    g = jax.jit(f)
    with precision(name):
        t = time.perf_counter()
        jax.block_until_ready(g(*args))
        first = time.perf_counter() - t
        times = []
        for _ in range(ROUNDS):
            t = time.perf_counter()
            jax.block_until_ready(g(*args))
            times.append(time.perf_counter() - t)
    print("%-28s %12.1f us, first call %10.1f ms" % (name, sorted(times)[ROUNDS // 2] * 1e6, first * 1e3))


if __name__ == "__main__":
    print("devices:", jax.devices(), jax.__version__)
    for name, f, make in WORKLOADS:
        measure(name, f, make())
