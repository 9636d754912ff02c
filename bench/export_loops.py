"""Loops of small ops for bench/exports.py: LOOPS has for each name a function and its arguments. Each loop has ROUNDS rounds, or fewer where
it says so. Their values neither grow without end nor become subnormal."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ROUNDS = 100000
rng = np.random.default_rng(31)
LOOPS = {}


def numbers(*shape):
    return rng.random(shape, np.float32)


def rotation(n):
    return np.linalg.qr(numbers(n, n))[0].astype(np.float32)


def loop(*arguments, rounds=ROUNDS):
    """The body takes the number of the round and the state, which is one value or several."""

    def register(body):
        several = len(arguments) > 1
        LOOPS[body.__name__] = (lambda *x: lax.fori_loop(0, rounds, lambda i, s: body(i, *s) if several else body(i, s), x if several else x[0]), arguments)
        return body

    return register


# ---- elementwise ops


@loop(numbers(8))
def add_8(i, x): return x * 0.5 + 1.0


@loop(numbers(64))
def chain_64(i, x): return jnp.sqrt(x * 0.5 + 1.0) - 0.25


@loop(numbers(256))
def tanh_256(i, x): return jnp.tanh(x) + 0.1


@loop(numbers(1000), numbers(1000))
def axpy_1000(i, x, y): return x * 0.5 + 0.01 * y, y * 0.999 + 0.001


@loop(numbers(2))
def newton_2(i, x): return x - 0.1 * jnp.array([x[0] ** 2 - 2.0, x[1] ** 3 - x[0]])


# ---- reductions


@loop(numbers(8), np.float32(0))
def sum_8(i, x, s): return x * 0.9 + 0.1, s * 0.5 + jnp.sum(x)


@loop(numbers(300), np.float32(0))
def sum_300(i, x, s): return x * 0.9 + 0.1, s * 0.5 + jnp.sum(x)


@loop(numbers(8, 16), numbers(16))
def colsum_8x16(i, x, s): return x * 0.9 + 0.1, s * 0.5 + jnp.sum(x, 0)


@loop(numbers(10))
def softmax_10(i, x): return jax.nn.softmax(x * 2.0)


@loop(numbers(32))
def argmin_32(i, x): return x.at[jnp.argmin(x)].add(0.7)


@loop(numbers(8, 3))
def pairwise_8x3(i, x):
    apart = x[:, None] - x[None]
    return x + 0.001 * jnp.sum(apart / (1.0 + jnp.sum(apart**2, -1, keepdims=True)), 1)


# ---- parts of tensors


@loop(numbers(64), numbers(8))
def put_sum(i, kept, x): return lax.dynamic_update_index_in_dim(kept, jnp.sum(x), i % 64, 0), x * 0.9 + 0.1


@loop(numbers(16, 32), numbers(32))
def slice_row(i, rows, x): return rows, x * 0.5 + lax.dynamic_index_in_dim(rows, i % 16, 0, keepdims=False)


@loop(rng.permutation(32).astype(np.int32), numbers(32))
def gather_32(i, at, x): return at, x[at] * 0.5 + 0.5


@loop(rng.integers(0, 32, 8).astype(np.int32), numbers(32))
def scatter_add_32(i, at, x): return at, x.at[at].add(0.25)


@loop(numbers(16))
def turn_16(i, x): return jnp.concatenate([x[1:] * 1.0001, x[:1]])


@loop(numbers(32))
def jacobi_32(i, x): return 0.5 * (jnp.roll(x, 1) + jnp.roll(x, -1))


@loop(numbers(8, 8))
def transpose_8x8(i, x): return x.T * 0.9 + 0.001


def scan_stack(carry, rows): return lax.scan(lambda c, x: (c * 0.9 + x, c), carry, rows)


LOOPS["scan_stack"] = (scan_stack, (numbers(4), numbers(ROUNDS // 5, 4)))


# ---- products, order, random bits


@loop(rotation(8), numbers(8))
def matvec_8(i, a, x): return a, a @ x * 0.9 + 0.01


@loop(rotation(16), numbers(16, 16))
def matmul_16(i, a, x): return a, a @ x * 0.9 + 0.01


@loop(numbers(32) - 0.5, numbers(32))
def dot_32(i, x, y): return x, y * 0.9 + 0.001 * jnp.dot(x, y) + 0.01


@loop(rotation(16), numbers(16))
def rnn_16(i, a, x): return a, jnp.tanh(a @ x + 0.1)


@loop(numbers(16), rounds=ROUNDS // 4)
def sort_16(i, x): return jnp.sort(x) * jnp.float32(-0.99) + 0.1


@loop(numbers(16))
def cumsum_16(i, x): return jnp.cumsum(x) * 0.1 + 0.01


@loop(np.array([1, 2], np.uint32), numbers(8), rounds=ROUNDS // 10)
def threefry_8(i, key, s):
    key, other = jax.random.split(key)
    return key, s * 0.5 + jax.random.uniform(other, (8,))


# ---- control flow inside


@loop(numbers(8))
def cond_8(i, x): return lax.cond(x[0] > 1.0, lambda x: x * 0.5, lambda x: x + 0.3, x)


@loop(numbers(8), rounds=ROUNDS // 10)
def nested_8(i, x): return lax.fori_loop(0, 10, lambda j, y: y * 0.99 + 0.01, x)
