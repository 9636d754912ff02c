"""The operations of JAX for programs.py: images have channels last. export_model writes a model for Tessera, and Peer is XLA on it."""

import json
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

import programs

f32 = jnp.float32
TYPES = {"float32": "F32", "bfloat16": "BF16", "int32": "I32"}  # of safetensors


def layer_norm(x, w, eps):
    wide = x.astype(f32)
    mean = wide.mean(-1, keepdims=True)
    y = (wide - mean) * lax.rsqrt(jnp.square(wide - mean).mean(-1, keepdims=True) + eps)
    return y.astype(x.dtype) * w["scale"] + w["b"]


class P:
    gelu = staticmethod(lambda x: jax.nn.gelu(x, approximate=False))
    gelu_tanh, silu, relu, tanh, square, mean = map(staticmethod, (jax.nn.gelu, jax.nn.silu, jax.nn.relu, jnp.tanh, jnp.square, jnp.mean))
    layer_norm = staticmethod(layer_norm)

    @staticmethod
    def float(x):
        return x.astype(f32)

    @staticmethod
    def linear(x, w):
        y = x @ w["w"]
        return y + w["b"] if "b" in w else y

    @staticmethod
    def times_transposed(x, w):
        return jnp.einsum("btd,vd->btv", x, w)

    @staticmethod
    def embed(table, tokens):
        return table[tokens]

    @staticmethod
    def row(table, index):
        return lax.dynamic_slice_in_dim(table, index, 1)

    @staticmethod
    def thirds(x):
        return jnp.split(x, 3, -1)

    @staticmethod
    def split_heads(x, heads):
        return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    @staticmethod
    def join_heads(x):
        return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)

    @staticmethod
    def attention(q, k, v, mask=None):
        """Several heads of q may share one of k and v."""
        parts = q.reshape(q.shape[0], k.shape[1], -1, *q.shape[2:])
        scores = jnp.einsum("bhgqd,bhkd->bhgqk", parts, k, preferred_element_type=f32) * q.shape[-1] ** -0.5
        if mask is not None:
            scores = scores + mask[:, :, None]
        return jnp.einsum("bhgqk,bhkd->bhgqd", jax.nn.softmax(scores).astype(q.dtype), v).reshape(q.shape)

    @staticmethod
    def until(position, length):
        return jnp.where(jnp.arange(length) <= position, 0, -1e9).reshape(1, 1, 1, -1)

    @staticmethod
    def put(cache, new, position):
        return lax.dynamic_update_slice_in_dim(cache, new, position, 2)

    @staticmethod
    def rms_norm(x, w):
        wide = x.astype(f32)
        return (wide * lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * w["scale"]

    @staticmethod
    def angles(position, size, base):
        angle = position * base ** (jnp.arange(0, size, 2) / -size)
        return jnp.tile(jnp.cos(angle), 2), jnp.tile(jnp.sin(angle), 2)

    @staticmethod
    def rotate(x, turn):
        a, b = jnp.split(x, 2, -1)
        return (x * turn[0] + jnp.concatenate([-b, a], -1) * turn[1]).astype(x.dtype)

    @staticmethod
    def conv(x, w, stride, padding):
        spatial = x.ndim - 2
        layout = ("NHWC", "HWIO", "NHWC") if spatial == 2 else ("NHC", "HIO", "NHC")
        y = lax.conv_general_dilated(x, w["kernel"], [stride] * spatial, [(padding, padding)] * spatial, dimension_numbers=layout)
        return y + w["b"] if "b" in w else y

    @staticmethod
    def batch_norm(x, w):
        return (x - w["mean"]) * (lax.rsqrt(w["var"] + 1e-5) * w["scale"]) + w["b"]

    @staticmethod
    def batch_norm_training(x, w):
        mean = x.mean((0, 1, 2))
        return (x - mean) * (lax.rsqrt(jnp.square(x - mean).mean((0, 1, 2)) + 1e-5) * w["scale"]) + w["b"]

    @staticmethod
    def group_norm(x, w, groups):
        y = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
        mean = y.mean((1, 3), keepdims=True)
        y = (y - mean) * lax.rsqrt(jnp.square(y - mean).mean((1, 3), keepdims=True) + 1e-5)
        return y.reshape(x.shape) * w["scale"] + w["b"]

    @staticmethod
    def max_pool(x, size, stride, padding):
        pads = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), pads)

    @staticmethod
    def mean_space(x):
        return x.mean((1, 2))

    @staticmethod
    def over_space(x):
        return x[:, None, None]

    @staticmethod
    def points(x):
        return x.reshape(x.shape[0], -1, x.shape[-1])

    @staticmethod
    def unpoints(x, size):
        return x.reshape(x.shape[0], size, size, -1)

    @staticmethod
    def channels_last(x):
        return x

    @staticmethod
    def lstm(x, w):
        size = w["wh"].shape[0]

        def step(carry, x):
            h, c = carry
            i, f, g, o = jnp.split(x + h @ w["wh"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros((x.shape[0], size), x.dtype)
        return lax.scan(step, (start, start), jnp.swapaxes(x @ w["wx"] + w["b"], 0, 1))[1].swapaxes(0, 1)

    @staticmethod
    def cross_entropy(logits, labels):
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    @staticmethod
    def descend(loss, w, rate):
        value, gradient = jax.value_and_grad(loss)(w)
        return value, jax.tree.map(lambda w, g: w - rate * g, w, gradient)


def made(model):
    """The arguments as NumPy's arrays; bf16 is ml_dtypes'."""
    given = model["make"]()
    narrow = lambda x: x.astype(jnp.bfloat16) if model["narrow"] and x.dtype == np.float32 else x
    return jax.tree.map(narrow, given)


def called(model):
    return lambda w, state, inputs: model["f"](P, w, state, *inputs)


def write_safetensors(path, leaves):
    header, end = {}, 0
    for i, x in enumerate(leaves):
        header[f"in{i:05d}"] = {"dtype": TYPES[x.dtype.name], "shape": x.shape, "data_offsets": [end, end + x.nbytes]}
        end += x.nbytes
    header = json.dumps(header).encode()
    header += b" " * (-len(header) % 64 + 56)
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for x in leaves:
            file.write(x.view(np.uint8) if x.ndim else x.tobytes())


def export_model(name, folder):
    """Writes the text and the leaves of the arguments."""
    given = made(programs.MODELS[name])
    exported = export.export(jax.jit(called(programs.MODELS[name]), keep_unused=True), platforms=["cpu"])(*given)
    with open(os.path.join(folder, "model.mlir"), "w") as file:
        file.write(exported.mlir_module())
    leaves = [np.asarray(leaf, order="C") for leaf in jax.tree.leaves(given)]
    write_safetensors(os.path.join(folder, "in.safetensors"), leaves)
    return len(jax.tree.leaves(given[0])), len(jax.tree.leaves(given[1])), sum(x.nbytes for x in leaves)


class Peer:
    def __init__(self, model, folder):
        given = made(model)
        self.w, self.state, self.inputs = jax.tree.map(jax.device_put, given)
        self.f = jax.jit(called(model), donate_argnums=1).lower(*given).compile()

    def call(self):
        value, self.state = self.f(self.w, self.state, self.inputs)
        return jax.block_until_ready((value, self.state))[0]

    @staticmethod
    def values(value):
        return [np.asarray(leaf) for leaf in jax.tree.leaves(value)]
