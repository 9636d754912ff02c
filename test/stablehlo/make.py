# Makes the files of this folder: programs that jax.export writes as StableHLO, and archives with arguments and the results that XLA
# computes. tessera_stablehlo_tests reads them. Locations are kept in two of them. Each text is there as bytecode, too: as a portable
# artifact (.vhlo), of another version of StableHLO for each program, and as bytecode of StableHLO itself (.bc). "make.py bytecode" makes
# bytecode of the texts in this folder, and "make.py symbolic" the folder symbolic/: programs whose batch has any size, with arguments and
# results at several sizes. "make.py linalg [NAME...]" makes the folder linalg/: programs that call LAPACK, as artifacts. Vectors of eigh and svd have
# any sign, so these programs return results that do not depend on it. "make.py eigen" makes the folder eigen/, of programs whose routines
# LAPACK itself computes. "make.py generic" makes the folder generic/: some of the texts in MLIR's generic form, as
# print(print_generic_op_form=True) writes them, "control" with its locations.
import os
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

d = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(1)
f32 = lambda *s: rng.standard_normal(s).astype(np.float32)
P = {}


def mlp(w1, b1, w2, b2, x):
    return jax.nn.softmax(jnp.tanh(x @ w1 + b1) @ w2 + b2)


P["mlp"] = (mlp, (f32(8, 16), f32(16), f32(16, 4), f32(4), f32(5, 8)))


def loss(w, x, y):
    return jnp.mean((jax.nn.relu(x @ w) - y) ** 2)


P["mlp_grad"] = (jax.value_and_grad(loss), (f32(8, 3), f32(5, 8), f32(5, 3)))


def cnn(k1, k2, x):
    y = lax.conv_general_dilated(x, k1, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = jax.nn.relu(y)
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    y = lax.conv_general_dilated(y, k2, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y.mean((1, 2))


P["cnn"] = (cnn, (f32(3, 3, 1, 4), f32(3, 3, 4, 6), f32(2, 8, 8, 1)))
P["cnn_grad"] = (jax.grad(lambda *a: cnn(*a).sum(), argnums=(0, 1)), P["cnn"][1])


def conv_nchw(k, x):
    return lax.conv_general_dilated(
        x,
        k,
        (1, 2),
        [(1, 0), (2, 1)],
        lhs_dilation=(1, 2),
        rhs_dilation=(2, 1),
        dimension_numbers=("NCHW", "OIHW", "NCHW"),
        feature_group_count=2,
    )


P["conv_nchw"] = (conv_nchw, (f32(4, 2, 3, 2), f32(2, 4, 7, 6)))


def lstm(wx, wh, b, xs):
    def step(c, x):
        h, s = c
        z = x @ wx + h @ wh + b
        i, f, g, o = jnp.split(z, 4, -1)
        s = jax.nn.sigmoid(f) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(s)
        return (h, s), h

    return lax.scan(step, (jnp.zeros(5), jnp.zeros(5)), xs)


P["lstm"] = (lstm, (f32(3, 20), f32(5, 20), f32(20), f32(6, 3)))
P["lstm_grad"] = (jax.grad(lambda *a: lstm(*a)[1].sum()), P["lstm"][1])


def attention(q, k, v):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    m = jnp.tril(jnp.ones(s.shape[-2:], bool))
    s = jnp.where(m, s, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), v)


P["attention"] = (attention, (f32(2, 2, 5, 4), f32(2, 2, 5, 4), f32(2, 2, 5, 4)))


def layernorm_gelu(x, g, b):
    m = x.mean(-1, keepdims=True)
    v = x.var(-1, keepdims=True)
    return jax.nn.gelu((x - m) / jnp.sqrt(v + 1e-5) * g + b, approximate=False)


P["layernorm_gelu"] = (layernorm_gelu, (f32(4, 6), f32(6), f32(6)))


def control(x, n):
    y = lax.fori_loop(0, n, lambda i, a: a * 1.5 + i, x)
    z = lax.cond(y.sum() > 0, lambda a: a + x, lambda a: a - x, y)
    w = lax.switch(n, [lambda a: a, lambda a: a * 2, lambda a: a * 3], z)
    return lax.while_loop(lambda a: jnp.all(a < 1e3), lambda a: a * 2 + 1, w)


P["control"] = (control, (np.abs(f32(3)), np.int32(4)))
P["embedding"] = (lambda e, i: e[i], (f32(7, 3), np.array([[1, 2], [6, 0]], np.int32)))
P["embedding_grad"] = (jax.grad(lambda e, i: (e[i] ** 2).sum()), P["embedding"][1])
P["scatter"] = (lambda x, i, u: x.at[i].set(u), (f32(6, 2), np.array([4, 1], np.int32), f32(2, 2)))
P["cache"] = (lambda c, k, i: lax.dynamic_update_slice(c, k, (0, i, 0)), (f32(2, 8, 3), f32(2, 1, 3), np.int32(5)))
P["sort"] = (lambda x: (jnp.sort(x, 1), jnp.argsort(-x, 1), lax.top_k(x, 3)), (f32(4, 9),))
P["random"] = (
    lambda k: (
        jax.random.normal(jax.random.wrap_key_data(k), (4,)),
        jax.random.randint(jax.random.wrap_key_data(k), (5,), 0, 10),
    ),
    (np.array([1, 2], np.uint32),),
)
P["kmeans"] = (
    lambda x, c: lax.fori_loop(
        0,
        3,
        lambda _, c: (
            lambda a: jax.ops.segment_sum(x, a, 3)
            / jnp.maximum(jax.ops.segment_sum(jnp.ones(len(x)), a, 3), 1)[:, None]
        )(jnp.argmin(((x[:, None] - c[None]) ** 2).sum(-1), 1)),
        c,
    ),
    (f32(20, 2), f32(3, 2)),
)
P["shapes"] = (
    lambda x: (
        jnp.pad(x, ((1, 2), (0, 1))),
        x[::-1],
        x[1:4:2, ::2],
        jnp.concatenate([x, x], 1),
        jnp.transpose(x),
        jnp.stack([x, x]),
        jnp.cumsum(x, 0),
        jnp.repeat(x, 2, 1),
        jnp.arange(5),
    ),
    (f32(5, 4),),
)
P["elementwise"] = (
    lambda x: [
        f(x)
        for f in (
            jnp.exp,
            jnp.expm1,
            jnp.log1p,
            jnp.sin,
            jnp.cos,
            jnp.tan,
            jnp.tanh,
            jnp.arctan,
            jnp.sqrt,
            lax.rsqrt,
            jnp.cbrt,
            jnp.floor,
            jnp.ceil,
            jnp.round,
            jnp.sign,
            jnp.abs,
            jnp.isnan,
            jnp.isfinite,
            lax.erf,
            jnp.sinh,
            jnp.arcsinh,
            jnp.log2,
            lambda a: a**3,
            lambda a: a**2.5,
            lambda a: a.astype(jnp.int32),
            lambda a: a.astype(jnp.bfloat16) + 1,
            lambda a: jnp.clip(a, 0.1, 0.5),
            lambda a: a % 0.3,
            lambda a: a // 0.3,
        )
    ],
    (np.abs(f32(6)) * 0.5,),
)
P["ints"] = (
    lambda x, y: [
        x + y,
        x * y,
        x // y,
        x % y,
        x & y,
        x | y,
        x ^ y,
        ~x,
        x << 2,
        x >> 1,
        jnp.bitwise_count(x),
        lax.clz(x),
        x < y,
        jnp.where(x < y, x, y),
        (x > 3) & (y > 2),
        x.astype(jnp.float32),
        x.max(),
        x.min(),
        jnp.any(x > 3),
        jnp.all(x > 3),
        jnp.argmax(x),
    ],
    (np.array([5, -7, 2, 9], np.int32), np.array([3, 2, -2, 4], np.int32)),
)
P["fft"] = (
    lambda x: (jnp.fft.fft(x), jnp.fft.rfft(x), jnp.abs(jnp.fft.fft(x)), jnp.fft.irfft(jnp.fft.rfft(x))),
    (f32(3, 8),),
)
P["ode"] = (
    lambda y: lax.scan(
        lambda y, _: (
            (lambda f: y + 0.1 * (f(y) + 2 * f(y + 0.05 * f(y)) + f(y)) / 4)(lambda y: jnp.stack([y[1], -y[0]])),
            y.sum(),
        ),
        y,
        None,
        length=10,
    ),
    (f32(2),),
)
P["chol"] = (lambda a: (jnp.linalg.cholesky(a @ a.T + 4 * jnp.eye(4)),), (f32(4, 4),))
P["dropout"] = (
    lambda k, x: jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(k), 0.5, x.shape), x / 0.5, 0.0),
    (np.array([3, 4], np.uint32), f32(3, 4)),
)


def without_locations(text):
    out, i = [], 0
    while i < len(text):
        if re.match(r" ?loc\(", text[i:]):
            depth, quoted = 0, False
            while True:
                c = text[i]
                quoted ^= c == '"'
                depth += (c == "(" and not quoted) - (c == ")" and not quoted)
                i += 1
                if c == ")" and not quoted and depth == 0:
                    break
        else:
            out.append(text[i])
            i += 1
    return "".join(line for line in "".join(out).splitlines(True) if not line.startswith("#loc"))


VERSIONS = ["1.17.0", "1.15.0", "1.13.0", "1.10.0", "1.9.0", "1.8.0", "1.5.0", "1.1.0", "1.0.0"]


# An artifact of the version, or of the next newer version that has all ops of the program.
def portable(text, index):
    for version in VERSIONS[index::-1]:
        try:
            return stablehlo.serialize_portable_artifact(ir.Module.parse(text), version)
        except Exception:
            continue
    return stablehlo.serialize_portable_artifact(ir.Module.parse(text), VERSIONS[0], True)


def write_bytecode(name, index):
    with mlir.make_ir_context(), open(f"{d}/{name}.mlir") as file:
        text = file.read()
        with open(f"{d}/{name}.bc", "wb") as out:
            out.write(mlir.module_to_bytecode(ir.Module.parse(text)))
        with open(f"{d}/{name}.vhlo", "wb") as out:
            out.write(portable(text, index % len(VERSIONS)))


def write_generic(source, name):
    with mlir.make_ir_context() as context:
        if source.endswith(".vhlo"):
            with open(f"{d}/{source}", "rb") as file:
                module = stablehlo.deserialize_portable_artifact(context, file.read())
        else:
            with open(f"{d}/{source}") as file:
                module = ir.Module.parse(file.read())
        with open(f"{d}/generic/{name}.generic", "w") as out:
            out.write(module.operation.get_asm(print_generic_op_form=True, enable_debug_info=name == "control") + "\n")


GENERIC = ["control.mlir", "cnn_grad.mlir", "scatter.mlir", "sort.mlir", "fft.mlir", "symbolic/loops.vhlo", "mesh/around.vhlo", "linalg/cholesky.vhlo"]

# Programs of a batch b and weights, and the shapes of the arguments that have it.
W = f32(3, 4)
S = {
    "network": (
        lambda x: (jax.nn.softmax(jnp.tanh(x @ W)), jax.nn.relu(x).mean(0), jnp.var(x, 0), jax.nn.gelu(x @ W)),
        [("b, 3", np.float32)],
    ),
    "attention": (attention, [("b, 2, t, 4", np.float32)] * 3),
    "lstm": (
        lambda xs: lstm(P["lstm"][1][0], P["lstm"][1][1], P["lstm"][1][2], xs),
        [("b, 3", np.float32)],
    ),
    "shapes": (
        lambda x, y: (
            jnp.concatenate([x, y], 0),
            x.reshape(-1),
            jnp.arange(x.shape[0]) * 2,
            jnp.pad(x, ((1, 2), (0, 1))),
            x[::-1],
            x[:, 1:],
            jnp.broadcast_to(x[None], (2, *x.shape)),
            x.T,
            jnp.ones((x.shape[0], 2)) * x.shape[0],
            jnp.full((y.shape[0] + 1,), 3),
        ),
        [("b, 3", np.float32), ("2*b, 3", np.float32)],
    ),
    "sorts": (
        lambda x: (jnp.sort(x, 0), jnp.argsort(x, 0), jnp.cumsum(x, 0), jnp.argmax(x, 0), lax.top_k(x, 2), x.max(0)),
        [("b, 3", np.float32)],
    ),
    "indexing": (
        lambda x, i: (x[i], jnp.take_along_axis(x, i[:, None], 1), x.at[i].add(1.0), x[0], x[-1], jax.nn.one_hot(i, 3)),
        [("b, 3", np.float32), ("b", np.int32)],
    ),
    "loops": (
        lambda x: (
            lax.fori_loop(0, x.shape[0], lambda i, a: a + x[i].sum() * i, 0.0),
            lax.while_loop(lambda a: jnp.all(a < 100), lambda a: a * 2 + x.shape[0], jnp.abs(x)),
            lax.cond(x.sum() > 0, lambda: x + x.shape[0], lambda: x - x.shape[0]),
            jax.grad(lambda y: (y**2).mean())(x),
        ),
        [("b, 3", np.float32)],
    ),
    "cnn": (lambda x: cnn(P["cnn"][1][0], P["cnn"][1][1], x), [("b, h, 8, 1", np.float32)]),
}
SIZES = [{"b": 2, "t": 3, "h": 8}, {"b": 5, "t": 1, "h": 11}]


def write_symbolic(name, f, specs):
    scope = export.SymbolicScope()
    shapes = [export.symbolic_shape(text, scope=scope) for text, _ in specs]
    arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape, (_, dtype) in zip(shapes, specs)]
    exported = export.export(jax.jit(f), platforms=["cpu"])(*arguments)
    with open(f"{d}/symbolic/{name}.vhlo", "wb") as file:
        file.write(exported.mlir_module_serialized)
    with open(f"{d}/symbolic/{name}.mlir", "w") as file:
        file.write(without_locations(exported.mlir_module()))
    for i, sizes in enumerate(SIZES):
        arrays = {}
        given = []
        for text, dtype in specs:
            shape = tuple(eval(part.strip(), dict(sizes)) for part in text.split(","))
            given.append(f32(*shape) if dtype == np.float32 else rng.integers(0, 2, shape).astype(dtype))
        arrays.update({f"in{j:02d}": x for j, x in enumerate(given)})
        for j, y in enumerate(jax.tree.leaves(jax.jit(f)(*given))):
            arrays[f"out{j:02d}"] = np.asarray(y)
        np.savez_compressed(f"{d}/symbolic/{name}{i}.npz", **arrays)


def c64(*s):
    return (f32(*s) + 1j * f32(*s)).astype(np.complex64)


def positive(a):
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + 3 * np.eye(a.shape[-1])).astype(a.dtype)


def of_eigh(a, lower=True):
    w, v = lax.linalg.eigh(a, lower=lower, symmetrize_input=False)[::-1]
    return w, jnp.abs(v), (v * w[..., None, :]) @ jnp.conj(jnp.swapaxes(v, -1, -2))


def of_svd(a, full):
    u, s, v = jnp.linalg.svd(a, full_matrices=full)
    k = s.shape[-1]
    return s, (u[..., :k] * s[..., None, :]) @ v[..., :k, :], u @ jnp.conj(jnp.swapaxes(u, -1, -2))


def qr_of(a):
    return jax.scipy.linalg.qr(a, mode="economic", pivoting=True)


def of_solves(a, b):
    t = jax.scipy.linalg.solve_triangular
    return [t(a, b, lower=lower, trans=trans, unit_diagonal=unit) for lower in (0, 1) for trans in (0, 1, 2) for unit in (0, 1)]


L = {
    "qr": (lambda a: (*jnp.linalg.qr(a), *jnp.linalg.qr(a, mode="complete")), (f32(5, 3),)),
    "qr_wide": (lambda a: jnp.linalg.qr(a), (f32(3, 5),)),
    "qr_complex": (lambda a: jnp.linalg.qr(a), (c64(2, 4, 3),)),
    "qr_special": (
        lambda a: jnp.linalg.qr(a),
        (np.array([[[0, 0], [0, 2], [0, -3]], [[3, 1], [0, 2], [0, 0]], [[1e30, 1], [1e30, 2], [-1e30, 3]]], np.float32),),
    ),
    "lu": (lambda a: lax.linalg.lu(a), (f32(3, 5, 5),)),
    "lu_tall": (lambda a: lax.linalg.lu(a), (f32(5, 3),)),
    "lu_wide": (lambda a: lax.linalg.lu(a), (c64(2, 3, 5),)),
    "lu_singular": (lambda a: (*lax.linalg.lu(a), jnp.linalg.det(a)), (np.array([[1, 2, 3], [2, 4, 6], [1, 1, 1]], np.float32),)),
    "solve": (lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.slogdet(a)), (f32(4, 4), f32(4, 2))),
    "triangular": (of_solves, (f32(4, 4) + 3 * np.eye(4, dtype=np.float32), f32(4, 2))),
    "triangular_complex": (of_solves, (c64(3, 3) + 3 * np.eye(3, dtype=np.complex64), c64(3, 2))),
    "cholesky": (
        lambda a: (lax.linalg.cholesky(a, symmetrize_input=False), jnp.linalg.cholesky(a, upper=True)),
        (np.stack([positive(f32(4, 4)), -np.eye(4, dtype=np.float32)]),),
    ),
    "eigh": (lambda a: (*of_eigh(a), *of_eigh(a, False)), (positive(f32(2, 4, 4)) - 5 * np.eye(4, dtype=np.float32),)),
    "eigh_complex": (of_eigh, (positive(c64(3, 3)),)),
    "svd": (lambda a: (*of_svd(a, False), *of_svd(a, True), jnp.linalg.svd(a, compute_uv=False)), (f32(2, 5, 3),)),
    "svd_complex": (lambda a: of_svd(a, False), (c64(3, 4),)),
    "least_squares": (lambda a, b: (jnp.linalg.lstsq(a, b)[0], jnp.linalg.pinv(a)), (f32(5, 3), f32(5))),
    "expm": (jax.scipy.linalg.expm, (f32(3, 3),)),
    "svd_values": (
        lambda a, b: (*(jnp.linalg.svd(x, full_matrices=full, compute_uv=False) for x in (a, b) for full in (0, 1)), jnp.linalg.matrix_rank(a)),
        (f32(2, 5, 3), f32(3, 5)),
    ),
    "svd_by_qr": (lambda a: lax.linalg.svd(a, algorithm=lax.linalg.SvdAlgorithm.QR, compute_uv=False), (c64(2, 4, 3),)),
    "qr_pivots": (lambda a, b: (*qr_of(a), *qr_of(b)), (f32(2, 5, 4) * np.array([1, 9, 3, 0], np.float32), c64(3, 5) * np.array([1, 2, 9, 5, 3], np.float32))),
    "tridiagonal_solve": (lambda *a: lax.linalg.tridiagonal_solve(*a), (f32(3, 6), f32(3, 6) * np.array([[1], [0.1], [0]], np.float32), f32(3, 6), f32(3, 6, 2))),
    "tridiagonal_complex": (lambda *a: lax.linalg.tridiagonal_solve(*a), (c64(5), c64(5) * np.float32(0.5), c64(5), c64(5, 1))),
    "tridiagonal_special": (
        lambda *a: lax.linalg.tridiagonal_solve(*a),
        (np.zeros((4, 2), np.float32), np.array([[1, 0], [0, 1], [0, 0], [2, 4]], np.float32), np.ones((4, 2), np.float32), f32(4, 2, 1)),
    ),
}

if "linalg" in sys.argv:
    checks = [export.DisabledSafetyCheck.custom_call(f"lapack_{t}{routine}_ffi") for t in "sc" for routine in ("gesvd", "geqp3", "gtsv")]
    for name in sys.argv[2:] or L:
        f, arguments = L[name]
        exported = export.export(jax.jit(f), platforms=["cpu"], disabled_checks=checks)(*arguments)
        with open(f"{d}/linalg/{name}.vhlo", "wb") as file:
            file.write(exported.mlir_module_serialized)
        arrays = {f"in{i:02d}": np.asarray(x) for i, x in enumerate(arguments)}
        arrays.update({f"out{i:02d}": np.asarray(y) for i, y in enumerate(jax.tree.leaves(jax.jit(f)(*arguments)))})
        np.savez_compressed(f"{d}/linalg/{name}.npz", **arrays)
    sys.exit()

def of_eig(a):
    w, vl, vr = lax.linalg.eig(a)
    adjoint = lambda x: jnp.conj(jnp.swapaxes(x, -1, -2))
    rows = jnp.stack([jnp.sort_complex(row) for row in w.reshape(-1, w.shape[-1])])
    norms = jnp.linalg.norm(vr, axis=-2)
    return rows, a @ vr - vr * w[..., None, :], adjoint(vl) @ a - w[..., :, None] * adjoint(vl), norms


def of_schur(a):
    t, z = lax.linalg.schur(a)
    adjoint = jnp.conj(jnp.swapaxes(z, -1, -2))
    return z @ t @ adjoint - a, adjoint @ z, jnp.tril(t, -2), jnp.trace(t, axis1=-2, axis2=-1)


def of_hessenberg(a):
    h, q = jax.scipy.linalg.hessenberg(a, calc_q=True)
    return jnp.abs(h), q @ h @ jnp.conj(q.T) - a


# Names of programs: function, arguments.
G = {
    "eig": (of_eig, (f32(2, 5, 5),)),
    "eig_complex": (of_eig, (c64(4, 4),)),
    "eig_not_finite": (lambda a: jnp.isnan(jnp.abs(jnp.linalg.eig(a)[0])), (np.array([[[1, np.nan], [0, 1]], [[1, 2], [3, 4]]], np.float32),)),
    "schur": (of_schur, (f32(2, 5, 5),)),
    "schur_complex": (of_schur, (c64(3, 3),)),
    "hessenberg": (of_hessenberg, (f32(4, 4),)),
    "hessenberg_complex": (of_hessenberg, (c64(4, 4),)),
    "tridiagonal": (lambda a: [jnp.abs(x) for x in lax.linalg.tridiagonal(a, lower=True)[1:3]], (positive(f32(5, 5)),)),
    "tridiagonal_complex": (lambda a: [jnp.abs(x) for x in lax.linalg.tridiagonal(a, lower=False)[1:3]], (positive(c64(2, 4, 4)),)),
    "sqrtm": (jax.scipy.linalg.sqrtm, (f32(3, 3),)),
    "approximate": (lambda a: (*lax.approx_max_k(a, 3), *lax.approx_min_k(a, 2, reduction_dimension=0)), (f32(4, 30),)),
}

if "eigen" in sys.argv:
    os.makedirs(f"{d}/eigen", exist_ok=True)
    for name, (f, arguments) in G.items():
        exported = export.export(jax.jit(f), platforms=["cpu"])(*arguments)
        with mlir.make_ir_context(), open(f"{d}/eigen/{name}.vhlo", "wb") as file:
            file.write(portable(without_locations(exported.mlir_module()), 0))
        arrays = {f"in{i:02d}": np.asarray(x) for i, x in enumerate(arguments)}
        arrays.update({f"out{i:02d}": np.asarray(y) for i, y in enumerate(jax.tree.leaves(jax.jit(f)(*arguments)))})
        np.savez_compressed(f"{d}/eigen/{name}.npz", **arrays)
    sys.exit()

if "generic" in sys.argv:
    os.makedirs(f"{d}/generic", exist_ok=True)
    for source in GENERIC:
        write_generic(source, source.replace("/", "_").rsplit(".", 1)[0])
    sys.exit()

if "symbolic" in sys.argv:
    for name, (f, specs) in S.items():
        write_symbolic(name, f, specs)
    sys.exit()

for index, (name, (f, arguments)) in enumerate(P.items()):
    if "bytecode" in sys.argv:
        write_bytecode(name, index)
        continue
    text = export.export(jax.jit(f), platforms=["cpu"])(*arguments).mlir_module()
    text = re.sub(r'loc\("[^"]*/', 'loc("', text)
    with open(f"{d}/{name}.mlir", "w") as file:
        file.write(text if name in ("mlp", "control") else without_locations(text))
    arrays = {f"in{i:02d}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(arguments))}
    for i, y in enumerate(jax.tree.leaves(jax.jit(f)(*arguments))):
        arrays[f"out{i:02d}"] = np.asarray(y).astype(np.float32) if y.dtype == jnp.bfloat16 else np.asarray(y)
    np.savez_compressed(f"{d}/{name}.npz", **arrays)
    write_bytecode(name, index)
