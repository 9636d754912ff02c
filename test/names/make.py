"""Random calls of NumPy's functions, with their results, for the functions of the same meaning (docs/names.md).

usage: make.py SEED >numpy.term      (NumPy 2.x)

Each line is an Erlang term {Name, Args, Result}. A tensor is {tensor, Type, Shape, Elements}, with nan, infinity and
neg_infinity for the floats that Erlang does not have; numbers, lists, maps, tuples, strings and atoms are themselves.
"""
import sys
import numpy as np

rng = np.random.default_rng(int(sys.argv[1]))
TYPES = {"float64": "f64", "float32": "f32", "int64": "s64", "int32": "s32", "uint8": "u8", "bool": "u8", "complex128": "c128"}


class Atom(str):
    pass


def number(x):
    if isinstance(x, (complex, np.complexfloating)):
        return "{complex,%s,%s}" % (number(x.real), number(x.imag))
    if isinstance(x, (bool, np.bool_)):
        return str(int(x))
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    if np.isnan(x):
        return "nan"
    if np.isinf(x):
        return "infinity" if x > 0 else "neg_infinity"
    text = repr(float(x))
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text


def term(x):
    if isinstance(x, Atom):
        return "'%s'" % x
    if isinstance(x, str):
        return '"%s"' % x
    if isinstance(x, np.ndarray):
        shape = "{%s}" % ",".join(map(str, x.shape))
        return "{tensor,%s,%s,[%s]}" % (TYPES[str(x.dtype)], shape, ",".join(number(e) for e in x.reshape(-1)))
    if isinstance(x, list):
        return "[%s]" % ",".join(map(term, x))
    if isinstance(x, tuple):
        return "{%s}" % ",".join(map(term, x))
    if isinstance(x, dict):
        return "#{%s}" % ",".join("%s=>%s" % (k, "true" if v is True else "false" if v is False else term(v)) for k, v in x.items())
    return number(x)


def case(name, args, result):
    if isinstance(result, (np.generic, int, float, complex)):
        result = np.asarray(result)
    print("{%s,%s,%s}." % (name, term(list(args)), term(result)))


def dims(least, most, sizes=(1, 6)):
    return tuple(int(n) for n in rng.integers(sizes[0], sizes[1], rng.integers(least, most + 1)))


def real(shape, nans=0.0):
    x = rng.normal(size=shape) * 10.0 ** rng.integers(-2, 3)
    x = np.asarray(x)
    return np.where(rng.random(shape) < nans, np.nan, x)


def whole(shape, low=-9, high=10):
    return np.asarray(rng.integers(low, high, shape))


def either(shape):
    return real(shape) if rng.random() < 0.5 else whole(shape)


def pick(*values):
    return values[rng.integers(len(values))]


def axis_of(x):
    return int(rng.integers(-x.ndim, x.ndim))


def ranges():
    a, b, s = (int(n) for n in rng.integers(-20, 20, 3))
    if s:
        case("arange", [a, b, s], np.arange(a, b, s, dtype="int32"))
    x, y = float(rng.normal() * 9), float(rng.normal() * 9)
    step = float(pick(-1, 1) * rng.integers(1, 9) / 4)
    case("arange", [x, y, step, Atom("f64")], np.arange(x, y, step))
    e = either(dims(0, 3))
    case("zeros_like", [e], np.zeros_like(e))
    case("ones_like", [e], np.ones_like(e))
    case("full_like", [e, 3], np.full_like(e, 3))
    n, m, k = (int(v) for v in rng.integers(0, 6, 3))
    case("tri", [n, {"columns": m, "offset": k - 3, "type": Atom("f64")}], np.tri(n, m, k - 3))
    lines = [either((int(n),)) for n in rng.integers(1, 5, rng.integers(1, 4))]
    for indexing in ("xy", "ij"):
        case("meshgrid", [lines, {"indexing": Atom(indexing)}], list(np.meshgrid(*lines, indexing=indexing)))


def moves():
    x = either(dims(0, 3))
    counts = [int(n) for n in rng.integers(0, 4, rng.integers(0, 5))]
    case("tile", [x, counts], np.tile(x, counts))
    x = either(dims(1, 3))
    a = axis_of(x)
    case("repeat", [x, 3, {"axis": a}], np.repeat(x, 3, a))
    each = [int(n) for n in rng.integers(0, 4, x.shape[a])]
    case("repeat", [x, each, {"axis": a}], np.repeat(x, each, a))
    case("repeat", [x, 2], np.repeat(x, 2))
    by = int(rng.integers(-9, 10))
    case("roll", [x, by], np.roll(x, by))
    case("roll", [x, by, {"axes": a}], np.roll(x, by, a))
    b = axis_of(x)
    case("swap_axes", [x, a, b], np.swapaxes(x, a, b))
    case("move_axis", [x, a, b], np.moveaxis(x, a, b))
    y = either(dims(3, 4))
    order = [int(n) for n in rng.permutation(y.ndim)]
    places = [int(n) for n in rng.permutation(y.ndim)]
    n = int(rng.integers(0, y.ndim + 1))
    case("move_axis", [y, order[:n], places[:n]], np.moveaxis(y, order[:n], places[:n]))
    case("roll", [y, [1, -2], {"axes": [0, -1]}], np.roll(y, [1, -2], [0, -1]))
    k = int(rng.integers(-3, 4))
    v, m = either(dims(1, 1)), either(dims(2, 2))
    case("diag", [v, k], np.diag(v, k))
    case("diag", [m, k], np.diag(m, k))
    z = either(dims(2, 4))
    case("tril", [z, k], np.tril(z, k))
    case("triu", [z, k], np.triu(z, k))


def parts():
    x = either(dims(1, 4, (1, 7)))
    index, own = [], []
    for size in x.shape[: rng.integers(0, x.ndim + 1)]:
        kind = rng.integers(5)
        if kind == 0:
            i = int(rng.integers(-size, size))
            index.append(i)
            own.append(i)
        elif kind == 1:
            index.append(slice(None))
            own.append(Atom("all"))
        else:
            ends = [pick(None, int(rng.integers(-size - 2, size + 3))) for _ in range(2)]
            step = int(pick(1, 1, 2, 3, -1, -2))
            index.append(slice(ends[0], ends[1], step))
            own.append(tuple([Atom("all") if e is None else e for e in ends] + [step]))
        if rng.random() < 0.2:
            index.append(None)
            own.append(Atom("new_axis"))
    if rng.random() < 0.3:
        at = int(rng.integers(0, len(index) + 1))
        named = [i for i in index[at:] if i is not None]
        if len([i for i in index if i is not None]) == x.ndim or not named:
            index.insert(at, Ellipsis)
            own.insert(at, Atom("..."))
            case("at", [x, own], np.asarray(x[tuple(index)]))
            return
    case("at", [x, own], np.asarray(x[tuple(index)]))


def elementwise():
    x = real(dims(0, 3))
    case("log2", [np.abs(x)], np.log2(np.abs(x)))
    case("log10", [np.abs(x)], np.log10(np.abs(x)))
    powers = np.asarray([2.0 ** int(n) for n in rng.integers(-300, 300, 4)])
    case("log2", [powers], np.log2(powers))
    powers = np.asarray([float(10 ** int(n)) for n in rng.integers(0, 22, 4)])
    case("log10", [powers], np.log10(powers))
    y = real(x.shape)
    case("hypot", [x, y], np.hypot(x, y))
    big = np.asarray([3e300, np.inf, 1e-310, 0.0, np.nan, -np.inf])
    other = np.asarray([-4e300, np.nan, 1e-310, 0.0, 1.0, 2.0])
    case("hypot", [big, other], np.hypot(big, other))
    odd = np.where(rng.random(x.shape) < 0.3, pick(np.nan, np.inf, -np.inf), x)
    case("is_finite", [odd], np.isfinite(odd))
    near = np.where(rng.random(x.shape) < 0.5, odd * (1 + 1e-7), odd + 1)
    for equal in (False, True):
        case("is_close", [odd, near, {"equal_nan": equal}], np.isclose(odd, near, equal_nan=equal))
        case("all_close", [odd, odd * (1 + 1e-9), {"equal_nan": equal}], np.allclose(odd, odd * (1 + 1e-9), equal_nan=equal))
    case("nan_to_num", [odd], np.nan_to_num(odd))
    case("nan_to_num", [odd, {"nan": 5, "infinity": 7.5}], np.nan_to_num(odd, nan=5, posinf=7.5))


def products():
    a, b = either(dims(0, 3)), either(dims(0, 3))
    case("kron", [a, b], np.kron(a, b))
    batch = dims(0, 2, (1, 4))
    m, k, n = (int(v) for v in rng.integers(1, 5, 3))
    left = either(pick(batch, batch[1:], tuple(1 for _ in batch)) + (m, k))
    right = either(pick(batch, batch[:0]) + (k, n))
    case("matmul", [left, right], np.matmul(left, right))
    v, w = either((k,)), either((k,))
    case("matmul", [left, v], np.matmul(left, v))
    case("matmul", [w, right], np.matmul(w, right))
    case("matmul", [v, w], np.matmul(v, w))
    p, q = real(dims(0, 2) + (3,)), real((3,))
    case("cross", [p, q], np.cross(p, q))
    front, back = np.moveaxis(p, -1, 0), np.moveaxis(p[..., ::-1], -1, 0)
    case("cross", [front, back, {"axis": 0}], np.cross(front, back, 0, 0, 0))
    x = either(dims(2, 4))
    off = int(rng.integers(-2, 3))
    case("trace", [x, {"offset": off}], np.trace(x, off, -2, -1))
    side = int(rng.integers(1, 7))
    square = real(dims(0, 2, (1, 3)) + (side, side))
    case("slogdet", [square], tuple(np.asarray(r) for r in np.linalg.slogdet(square)))
    z = square + 1j * real(square.shape)
    case("slogdet", [z], tuple(np.asarray(r) for r in np.linalg.slogdet(z)))


TEXTS = ["ij,jk->ik", "ij,jk", "ij->ji", "ji", "ii", "ii->i", "iij->j", "i,i", "i,j->ij", "ij,ij->", "ij,kj->ik", "bij,bjk->bik", "...ij,...jk->...ik",
         "i...->...", "ij,jk,kl->il", "ij,jk,kl,lm->im", "abc,cd,def->abef", "ab,bc,cd,de,ea->", "bhqd,bhkd->bhqk", "a,b,c->cab", "ijk,ijk->k",
         "ij,j,i->", "iji->j", "...,...", "ab,ab,ab->a", "ea,fb,abcd,gc,hd->efgh", "ijj,jk->i", "a,a,a,a,a,a,a,a->", "ab,bc,cd,de,ef,fg,gh,hi->ai"]


def einsums():
    for text in TEXTS:
        size = {c: int(n) for c, n in zip("abcdefghijklmq", rng.integers(1, 5, 14))}
        extra = dims(0, 2, (1, 4))
        args = [either(sum((extra if c == "." else (size[c],) for c in part.replace("...", ".")), ())) for part in text.split("->")[0].split(",")]
        case("einsum", [text, args], np.asarray(np.einsum(text, *args)))


def statistics():
    x = real(dims(1, 3), 0.0)
    a = axis_of(x)
    w = np.abs(real(x.shape)) + 0.1
    case("average", [x, {"axes": a, "weights": w}], np.average(x, a, w))
    case("average", [x, {"axes": a, "weights": w.reshape(-1)[: x.shape[a]]}], np.average(x, a, w.reshape(-1)[: x.shape[a]]))
    y = real(dims(1, 3, (1, 7)), 0.3)
    a = axis_of(y)
    keep = bool(rng.integers(2))
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for own, f in [("nan_sum", np.nansum), ("nan_product", np.nanprod), ("nan_max", np.nanmax), ("nan_min", np.nanmin), ("nan_mean", np.nanmean),
                       ("nan_variance", np.nanvar), ("nan_standard_deviation", np.nanstd), ("nan_median", np.nanmedian)]:
            case(own, [y], f(y))
            case(own, [y, {"axes": a, "keep_axes": keep}], np.asarray(f(y, axis=a, keepdims=keep)))
        q = float(rng.random())
        case("nan_quantile", [y, q, {"axes": a}], np.asarray(np.nanquantile(y, q, axis=a)))
        case("nan_variance", [y, {"ddof": 1}], np.nanvar(y, ddof=1))
        full = np.where(np.isnan(y).all(a, keepdims=True), 1.0, y)
        case("nan_argmax", [full, {"axis": a}], np.nanargmax(full, a))
        case("nan_argmin", [full, {"axis": a}], np.nanargmin(full, a))
    t = either(tuple(int(n) for n in rng.integers(2, 6, 2)))
    case("cov", [t], np.cov(t))
    case("cov", [t, {"rows": False, "ddof": 0}], np.cov(t, rowvar=False, ddof=0))
    case("cov", [t[0]], np.cov(t[0]))
    z = real(t.shape) + 1j * real(t.shape)
    case("cov", [z], np.cov(z))
    r = real(t.shape)
    case("corrcoef", [r], np.corrcoef(r))
    case("corrcoef", [r, {"rows": False}], np.corrcoef(r, rowvar=False))
    d = either(dims(1, 3))
    a, n = axis_of(d), int(rng.integers(0, 4))
    case("diff", [d, {"axis": a, "order": n}], np.diff(d, n, a))


def searches():
    edges = np.sort(pick(real((int(rng.integers(1, 9)),)), whole((int(rng.integers(1, 9)),)).astype("float64")))
    x = np.concatenate([real((5,)), rng.choice(edges, 3), [np.nan, np.inf, -np.inf]])
    for side in ("left", "right"):
        case("searchsorted", [edges, x, {"side": Atom(side)}], np.searchsorted(edges, x, side))
        case("digitize", [x, edges, {"right": side == "left"}], np.digitize(x, edges, side == "left"))
    ints = np.sort(whole((int(rng.integers(1, 40)),)))
    w = whole((3, 4))
    case("searchsorted", [ints, w], np.searchsorted(ints, w))
    y = real((int(rng.integers(1, 40)),))
    bins = int(rng.integers(1, 9))
    case("histogram", [y, bins], np.histogram(y, bins))
    case("histogram", [y, bins, {"range": (-2.0, 3.5), "weights": np.abs(y)}], np.histogram(y, bins, (-2.0, 3.5), weights=np.abs(y)))
    uneven = np.unique(np.concatenate([edges, [edges[0] + 0.5]]))
    if ((y >= uneven[0]) & (y <= uneven[-1])).any():
        case("histogram", [y, uneven, {"density": True}], np.histogram(y, uneven, density=True))
    v = whole((int(rng.integers(1, 20)),), 0, 9)
    case("bincount", [v], np.bincount(v))
    case("bincount", [v, {"length": 12, "weights": v * 0.5}], np.bincount(v, v * 0.5, 12))
    places = np.unique(real((int(rng.integers(1, 9)),)))
    heights = real(places.shape)
    at = np.concatenate([real((6,)), places])
    case("interp", [at, places, heights], np.interp(at, places, heights))
    case("interp", [at, places, heights, {"left": -1.5, "right": 2}], np.interp(at, places, heights, -1.5, 2))
    n = whole(dims(1, 3), -1, 2)
    case("nonzero", [n], list(np.nonzero(n)))
    case("argwhere", [n], np.argwhere(n))
    case("argwhere", [real((3,), 0.5)], np.argwhere(np.ones(3)))


for _ in range(4):
    for family in (ranges, moves, elementwise, products, statistics, searches):
        family()
for _ in range(40):
    parts()
for _ in range(2):
    einsums()
