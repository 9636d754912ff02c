# Makes the folder names/: programs of jax.export whose arguments and results are containers, as text (.mlir), as artifacts (.vhlo), and as
# what serialize() returns (.exported). tessera_stablehlo_names_tests reads them, and says what they compute.
import dataclasses
import os
import typing

import jax
import numpy as np
from jax import export

jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "names")
os.makedirs(folder, exist_ok=True)


class Pair(typing.NamedTuple):
    first: object
    second: object


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    kernel: object
    bias: object


@jax.tree_util.register_pytree_node_class
class Flat:
    """A container whose leaves have numbers only."""

    def __init__(self, *leaves):
        self.leaves = leaves

    def tree_flatten(self):
        return self.leaves, None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)


def containers(weights, pair, *more, scale):
    layer = weights["layer"]
    x = pair.first * scale + layer.kernel
    return {
        "out": x + weights["it's"][0],
        "aux": (pair.second - 1, [layer.bias * 2]),
        "pair": Pair(more[0], more[1].leaves[1]),
        "none": None,
        "ke\\y \u00e9": weights["odd"][("t", 1)] + 5,
    }


def network(weights, x):
    return x @ weights["w"] + weights["b"]


def single(x):
    return x + 1


def numbered(xs):
    return xs[1], None, xs[0]


row = jax.ShapeDtypeStruct((2,), np.float32)
rows = jax.ShapeDtypeStruct(export.symbolic_shape("batch, 2"), np.float32)
weights = {"layer": Layer(row, row), "it's": [row], "odd": {("t", 1): row}}
programs = {
    "containers": (containers, (weights, Pair(row, row), row, Flat(row, row)), {"scale": row}),
    "network": (network, ({"w": jax.ShapeDtypeStruct((2, 3), np.float32), "b": jax.ShapeDtypeStruct((3,), np.float32)}, rows), {}),
    "single": (single, (row,), {}),
    "numbered": (numbered, ([row, row],), {}),
}
for name, (f, arguments, named) in programs.items():
    exported = export.export(jax.jit(f, keep_unused=True), platforms=["cpu"])(*arguments, **named)
    try:
        serialized = exported.serialize()
    except (ValueError, AttributeError):  # of containers that JAX does not know
        serialized = None
    for ending, data in ("mlir", exported.mlir_module().encode()), ("vhlo", exported.mlir_module_serialized), ("exported", serialized):
        if data:
            with open(f"{folder}/{name}.{ending}", "wb") as file:
                file.write(data)
