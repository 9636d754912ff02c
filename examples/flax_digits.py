"""Trains a convolutional network on handwritten digits in flax, and writes what serves it without Python: python3 examples/flax_digits.py

  data/flax_digits.vhlo                  the network as a portable artifact of StableHLO, for a batch of any size
  data/flax_digits.safetensors           its weights, by the names of their paths
  data/flax_digits_answers.safetensors   some digits and what XLA answers

Needs jax, flax, optax and safetensors. flax_digits.erl and flax_digits.exs serve these files."""
import gzip
import os

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.traverse_util import flatten_dict, unflatten_dict
from jax import export
from safetensors.numpy import save_file

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
LEARN = 1500  # of 1797 digits


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = x.reshape(-1, 8, 8, 1) / 16
        x = nn.relu(nn.Conv(16, (3, 3))(x))
        x = nn.max_pool(nn.relu(nn.Conv(32, (3, 3))(x)), (2, 2), (2, 2))
        x = nn.relu(nn.Dense(64)(x.reshape(x.shape[0], -1)))
        return nn.softmax(nn.Dense(10)(x))


def digits():
    with gzip.open(os.path.join(DATA, "digits.csv.gz"), "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.int32)
    return rows[:, :64].astype(np.float32), rows[:, 64]


def trained(x, y, epochs=30, batch=50):
    network, optimizer = Network(), optax.adam(2e-3)
    weights = network.init(jax.random.key(1), x[:1])
    state = optimizer.init(weights)

    def loss(weights, x, y):
        return -jnp.log(jnp.take_along_axis(network.apply(weights, x), y[:, None], 1) + 1e-9).mean()

    @jax.jit
    def step(weights, state, x, y):
        updates, state = optimizer.update(jax.grad(loss)(weights, x, y), state)
        return optax.apply_updates(weights, updates), state

    order = np.random.default_rng(1)
    for _ in range(epochs):
        for part in order.permutation(len(x)).reshape(-1, batch):
            weights, state = step(weights, state, x[part], y[part])
    return weights


def main():
    x, y = digits()
    named = flatten_dict(trained(x[:LEARN], y[:LEARN]), sep=".")
    named = {name: np.asarray(weight) for name, weight in sorted(named.items())}

    # The weights are arguments, in the order of their names; then come the digits.
    def network(weights, x):
        return Network().apply(unflatten_dict(weights, sep="."), x)

    shape = jax.ShapeDtypeStruct(export.symbolic_shape("batch, 64"), np.float32)
    exported = export.export(jax.jit(network), platforms=["cpu"])(named, shape)
    with open(os.path.join(DATA, "flax_digits.vhlo"), "wb") as file:
        file.write(exported.mlir_module_serialized)
    save_file(named, os.path.join(DATA, "flax_digits.safetensors"))
    answers = {"digits": x[LEARN : LEARN + 16], "answers": np.asarray(jax.jit(network)(named, x[LEARN : LEARN + 16]))}
    save_file(answers, os.path.join(DATA, "flax_digits_answers.safetensors"))
    guessed = np.argmax(jax.jit(network)(named, x[LEARN:]), 1)
    print(f"{100 * np.mean(guessed == y[LEARN:]):.1f} % of {len(guessed)} digits that it has not seen are right")


if __name__ == "__main__":
    main()
