# Makes the folder mesh/: programs for the partitions of a mesh that jax.export writes, as text and as a portable artifact, and archives with arguments
# and the results that XLA computes on eight host devices. tessera_stablehlo_mesh_tests reads them. "mesh.py SEED COUNT FOLDER" makes random programs
# instead; with STABLEHLO_MESH=FOLDER the tests read those.
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")  # names of files alone
here = os.path.dirname(os.path.abspath(__file__))


def make_mesh(shape, names, kind=AxisType.Auto):
    devices = jax.devices()[: int(np.prod(shape))]
    return jax.make_mesh(shape, names, devices=devices, axis_types=(kind,) * len(shape))


def save(path, mesh, f, specs, arguments, symbolic=None):
    shardings = [NamedSharding(mesh, spec) for spec in specs]
    jitted = jax.jit(f, in_shardings=tuple(shardings), keep_unused=True)
    size = export.symbolic_shape(symbolic) if symbolic else None
    shapes = [jax.ShapeDtypeStruct(size or a.shape, a.dtype, sharding=s) for a, s in zip(arguments, shardings)]
    exported = export.export(jitted, platforms=["cpu"])(*shapes)
    results = jax.tree.leaves(jitted(*[jax.device_put(a, s) for a, s in zip(arguments, shardings)]))
    with open(path + ".mlir", "w") as out:
        lines = exported.mlir_module().splitlines()
        out.write("\n".join(line for line in lines if not line.startswith("#loc")) + "\n")
    with open(path + ".vhlo", "wb") as out:
        out.write(exported.mlir_module_serialized)
    save_arrays(path, arguments, results)


# A program that JAX does not write.
def save_text(path, text, arguments, results):
    age = stablehlo.StablehloCompatibilityRequirement.WEEK_12
    with open(path + ".mlir", "w") as out:
        out.write(text)
    with mlir.make_ir_context(), open(path + ".vhlo", "wb") as out:
        version = stablehlo.get_version_from_compatibility_requirement(age)
        out.write(_jax.mlir.serialize_portable_artifact(ir.Module.parse(text), version, True))
    save_arrays(path, arguments, results)


def save_arrays(path, arguments, results):
    arrays = {f"in{i}": a for i, a in enumerate(arguments)} | {f"out{i:02}": np.asarray(r) for i, r in enumerate(results)}
    np.savez_compressed(path + ".npz", **arrays)


# ---- programs of their own

grid = make_mesh((4, 2), ("x", "y"))
explicit = make_mesh((4, 2), ("x", "y"), AxisType.Explicit)
single = make_mesh((1,), ("x",))
RING = [(i, (i + 1) % 4) for i in range(4)]


def local(body, inputs, outputs, mesh=grid, **options):
    return jax.shard_map(body, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False, **options)


def collectives(a, b):
    index = lax.axis_index(("y", "x")).astype(a.dtype)
    joined = lax.all_gather(b, ("y", "x"), axis=0, tiled=True)
    return (
        lax.psum(a, "x") * index,
        lax.psum_scatter(joined, ("y", "x"), scatter_dimension=0, tiled=True) + lax.pmin(a, "y"),
        lax.ppermute(a, "x", [(0, 2), (3, 1)]),
        lax.all_to_all(a, "y", 0, 1, tiled=True),
        lax.pmax(a, ("x", "y")),
        lax.all_gather(a > 0, "y"),
    )


def kinds(a):
    half = lax.pmean(a.astype(jnp.bfloat16), "y").astype(jnp.float32)
    return lax.psum(a.astype(jnp.int8), "x"), half, lax.psum(a + 1j * a, ("x", "y"))


def ring(a, b):
    def step(i, state):
        total, block = state
        return total + block @ b * (i + lax.axis_index("x")), lax.ppermute(block, "x", RING)

    return lax.fori_loop(0, 4, step, (jnp.zeros_like(a), a))[0]


def branch(a):
    up = lambda v: lax.pmax(v, "x") * lax.axis_index("y").astype(v.dtype)
    return lax.cond(lax.psum(a.sum(), ("x", "y")) > 0, up, lambda v: v - lax.psum(v, "y"), a)


def network(w, x):
    loss = lambda w, x: lax.pmean(jnp.mean(jnp.tanh(x @ w) ** 2), ("x", "y"))
    return jax.shard_map(loss, mesh=grid, in_specs=(P(), P(("x", "y"))), out_specs=P())(w, x)


def nested(a):
    def inner(v):
        return lax.psum(v, "y") + lax.axis_index("y").astype(v.dtype)

    def outer(v):
        cut = jax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"}, check_vma=False)
        return cut(v) * 2 + lax.axis_index("x").astype(v.dtype)

    return local(outer, P("x"), P("x"), axis_names={"x"})(a)


def partial(a, b):
    body = lambda u, v: (lax.psum(u, "x") @ v, lax.all_gather(v, "x", tiled=True))
    return local(body, (P("x"), P()), (P(), P()), axis_names={"x"})(a, b)


def repeated(a):
    double = local(lambda v: lax.psum(v, "x") % 7 + lax.axis_index("y").astype(v.dtype), P("x", "y"), P(None, "y"))
    return lax.scan(lambda c, _: (c + jnp.tile(double(c), (4, 1)), c.sum()), a, None, length=2)


def around(a, b):
    step = local(lambda u, v: lax.psum_scatter(lax.all_gather(u, "x", tiled=True) @ v, "x", tiled=True), (P("x"), P()), P("x"))
    return a - 0.1 * step(a, b), step(a, b).sum()


def constrained(a, b):
    return lax.with_sharding_constraint(a @ b, NamedSharding(grid, P("x", "y"))).sum(0)


PROGRAMS = {
    "collectives": (
        grid,
        local(
            collectives,
            (P("x", "y"), P("x", None)),
            (P("x", "y"), P(("y", "x")), P("x", "y"), P("x", "y"), P(None, None), P("y", "x")),
        ),
        [P("x", "y"), P("x", None)],
        [(16, 8), (16, 4)],
    ),
    "kinds": (grid, local(kinds, P("x", "y"), (P(None, "y"), P("x"), P())), [P("x", "y")], [(8, 8)]),
    "ring": (grid, local(ring, (P("x"), P()), P("x")), [P("x"), P()], [(8, 8), (8, 8)]),
    "branch": (grid, local(branch, P("x", "y"), P("x", "y")), [P("x", "y")], [(8, 8)]),
    "gradient": (grid, jax.value_and_grad(network), [P(), P(("x", "y"))], [(8, 8), (16, 8)]),
    "nested": (grid, nested, [P("x")], [(8, 8)]),
    "partial": (grid, partial, [P("x", "y"), P(None, "y")], [(8, 8), (8, 8)]),
    "repeated": (grid, repeated, [P("x", "y")], [(8, 8)]),
    "around": (grid, around, [P("x"), P()], [(8, 8), (8, 8)]),
    "constrained": (grid, constrained, [P("x"), P(None, "y")], [(8, 8), (8, 8)]),
    "whole": (explicit, lambda a, b: jnp.tanh(a @ b).sum(0), [P("x"), P()], [(8, 8), (8, 8)]),
    "single": (single, local(lambda a: lax.psum(a, "x") + lax.axis_index("x"), P("x"), P(), single), [P("x")], [(4, 4)]),
}



def write_all(folder):
    rng = np.random.default_rng(1)
    os.makedirs(folder, exist_ok=True)
    for name, (mesh, f, specs, sizes) in PROGRAMS.items():
        save(f"{folder}/{name}", mesh, f, specs, [rng.integers(-3, 4, s).astype(np.float32) for s in sizes])
    a = rng.integers(-3, 4, (16, 4)).astype(np.float32)
    f = local(lambda v: lax.psum(v * 2, "y") + lax.axis_index("x").astype(v.dtype), P("x"), P("x"))
    save(f"{folder}/symbolic", grid, f, [P("x")], [a], symbolic="8*b, 4")
    save_text(f"{folder}/replicas", OF_REPLICAS, [a[0]], [np.full(4, a[0].sum())])
    write_parts(folder)


def write_parts(folder):
    a = np.arange(32, dtype=np.float32).reshape(8, 4)
    save_text(f"{folder}/parts", OF_PARTS, [a], [2 * a])
    save_text(f"{folder}/parts_local", OF_LOCAL_PARTS, [a], [a.T])


# Groups of replicas: without use_global_device_ids all partitions of the only replica are one group. JAX always sets it.
OF_REPLICAS = """module {
  sdy.mesh @mesh = <["i"=4]>
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"i"}]>] out_shardings=[<@mesh, [{"i"}]>] manual_axes={"i"} (%a: tensor<1xf32>) {
      %r = "stablehlo.all_reduce"(%a) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<1xf32>) -> tensor<1xf32>
      sdy.return %r : tensor<1xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


# Dims that parts of an axis cut: Shardy makes such shardings of reshapes.
OF_PARTS = """module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"x":(2)4}]>})
      -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(4)2, "x":(1)2}, {}]>}) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<8x4xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"x":(2)2}]> : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
"""

OF_LOCAL_PARTS = """module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<4x8xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x":(1)2}, {"x":(2)2}]>] out_shardings=[<@mesh, [{"x":(2)2}, {"x":(1)2}]>]
        manual_axes={"x"} (%a: tensor<4x2xf32>) {
      %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
      sdy.return %t : tensor<2x4xf32>
    } : (tensor<8x4xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
"""


# ---- random programs

SHAPES = [((4, 2), "xy"), ((2, 4), "xy"), ((8,), "x"), ((2, 2, 2), "xyz"), ((2, 3), "xy"), ((1, 4), "xy")]
KINDS = "psum pmax pmin pmean gather rows scatter permute exchange index mixed scan loop branch".split()
MOST = 96


def step(kind, v, w, axes, count, names, seed, dim):
    size = v.shape[dim]
    if kind == "psum":
        return lax.psum(v, axes)
    if kind == "pmean":
        return lax.pmean(v, axes).astype(v.dtype)
    if kind == "pmax":
        return lax.pmax(v, axes)
    if kind == "pmin":
        return lax.pmin(v, axes)
    if kind == "gather":
        return lax.all_gather(v, axes, axis=dim, tiled=True) if size * count <= MOST else v
    if kind == "rows":
        return lax.all_gather(v, axes)[seed % count]
    if kind == "scatter":
        return lax.psum_scatter(v, axes, scatter_dimension=dim, tiled=True) if size % count == 0 else v
    if kind == "permute":
        random = np.random.default_rng(seed)
        return lax.ppermute(v, axes, [(i, int(j)) for i, j in enumerate(random.permutation(count)) if random.random() < 0.8])
    if kind == "exchange":
        fits = size % count == 0 and v.shape[1 - dim] * count <= MOST
        return lax.all_to_all(v, axes, dim, 1 - dim, tiled=True) if fits else v
    if kind == "index":
        return v * (lax.axis_index(axes) + 1).astype(v.dtype)
    if kind == "mixed":
        return v * 2 + w.sum().astype(v.dtype) % 7
    if kind == "scan":
        add = lambda c, _: (c + lax.psum(c, axes) % 5 + lax.axis_index(axes).astype(c.dtype), None)
        return lax.scan(add, v, None, length=2)[0]
    if kind == "loop":
        turn = lambda c: (c[0] + 1, lax.ppermute(c[1], axes, [(i, (i + 1) % count) for i in range(count)]))
        return lax.while_loop(lambda c: c[0] < 2, turn, (0, v))[1]
    up = lambda q: lax.pmax(q, axes) * (lax.axis_index(axes) + 1).astype(q.dtype)
    return lax.cond(lax.psum(w.sum(), names) > 0, up, lambda q: q - 1, v)


def random_program(rng, path):
    shape, names = SHAPES[rng.integers(len(SHAPES))]
    names = tuple(names)
    mesh, sizes = make_mesh(shape, names), dict(zip(names, shape))
    dtype = [np.float32, np.int32][rng.integers(2)]
    cuts = [P(names[0]), P(None, names[-1]), P(names), P(tuple(reversed(names))), P()]
    specs = [cuts[rng.integers(len(cuts))] for _ in range(3)]
    steps = []
    for _ in range(rng.integers(2, 6)):
        axes = tuple(str(a) for a in rng.permutation(names)[: rng.integers(1, len(names) + 1)])
        steps.append((KINDS[rng.integers(len(KINDS))], axes, *(int(i) for i in rng.integers(0, [1000, 3, 3, 2]))))

    def body(*values):
        values = list(values)
        for kind, axes, seed, at, other, dim in steps:
            count = int(np.prod([sizes[a] for a in axes]))
            v = step(kind, values[at], values[other], axes, count, names, seed, dim)
            values[at] = v % 1009 if v.dtype == np.int32 else jnp.fmod(v, 1009.0)
        return tuple(values)

    outputs = tuple(P(names) if rng.random() < 0.5 else P(None, names) for _ in range(3))
    inner = local(body, tuple(specs), outputs, mesh)

    def repeat(a, b, c):
        again = lambda s, _: (tuple(v + r.sum() % 3 for v, r in zip(s, inner(*s))), None)
        return lax.scan(again, (a, b, c), None, length=2)[0]

    forms = [inner, lambda a, b, c: (inner(a, b, c)[0].T * 2, a.sum()), lambda a, b, c: inner(a + 1, b, c), repeat]
    arguments = [rng.integers(-3, 4, (24, 24)).astype(dtype) for _ in range(3)]
    save(path, mesh, forms[rng.integers(len(forms))], specs, arguments)


if len(sys.argv) == 4:
    os.makedirs(sys.argv[3], exist_ok=True)
    random = np.random.default_rng(int(sys.argv[1]))
    for i in range(int(sys.argv[2])):
        random_program(random, f"{sys.argv[3]}/random{i:03}")
else:
    write_all(f"{here}/mesh")
