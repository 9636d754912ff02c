# Makes lines.mlir and lines.vhlo beside this file: a program of JAX with its locations. tessera_stablehlo_lines_tests knows the numbers of its lines.
import os
import subprocess
import sys
import jax
import jax.numpy as jnp
from jax import export


def layer(x, w):
    y = x @ w
    return jnp.tanh(y)


def model(x, w):
    y = layer(x, w)
    return jnp.sort(y, axis=0)


def write():
    shapes = [jax.ShapeDtypeStruct((64, 32), jnp.float32), jax.ShapeDtypeStruct((32, 16), jnp.float32)]
    with open("lines.mlir", "w") as f:
        f.write(jax.jit(model).lower(*shapes).as_text(debug_info=True))
    with open("lines.vhlo", "wb") as f:
        f.write(export.export(jax.jit(model))(*shapes).mlir_module_serialized)


if __name__ == "__main__":
    # Under this name the locations have no folder of the machine.
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run([sys.executable, "-c", "n = {'__name__': 'lines'}; exec(compile(open('lines.py').read(), 'lines.py', 'exec'), n); n['write']()"], cwd=here, check=True)
