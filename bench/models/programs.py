"""The models of bench/models/run.py, each written once. A model is a function f(P, w, state, *inputs) with the result (value, new state), where P has the
operations of JAX or of torch (sides.py), w are weights, and state is what the next call gets: a cache, or the weights of a training step. MODELS has for each
name its class, the function that makes (w, state, inputs) as NumPy's arrays, and f. Weights are random. Names of leaves say what they are: `w' {in, out} of
a product, `kernel' {..., in, out} of a convolution, `image' an operand with channels last."""

import zlib

import numpy as np

MODELS = {}


class Random:
    def __init__(self, name):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, *shape, scale=0.02):
        x = self.rng.standard_normal(shape, np.float32)
        x *= np.float32(scale)
        return x

    def linear(self, n, m, bias=True):
        w = {"w": self.normal(n, m, scale=n**-0.5)}
        return w | {"b": self.normal(m)} if bias else w

    def conv(self, *kernel, bias=True):
        w = {"kernel": self.normal(*kernel, scale=float(np.prod(kernel[:-1])) ** -0.5)}
        return w | {"b": self.normal(kernel[-1])} if bias else w

    def norm(self, n, names=("scale", "b")):
        return {name: self.normal(n) + (name in ("scale", "var")) for name in names}

    def batch_norm(self, n):
        return self.norm(n, ("scale", "b", "mean")) | {"var": 1 + abs(self.normal(n))}

    def tokens(self, bound, *shape):
        return self.rng.integers(0, bound, shape, np.int32)


def model(name, make, kind="inference", **options):
    """options are keyword arguments of both functions."""

    def register(f):
        MODELS[name] = {
            "kind": kind,
            "narrow": name.endswith("_bf16"),
            "make": lambda: make(Random(name.removesuffix("_bf16")), **options),
            "f": lambda P, w, state, *inputs: f(P, w, state, *inputs, **options),
        }
        return f

    return register


# ---- transformers


def bert_layer(r, width, inner):
    parts = {name: r.linear(width, width) for name in ("q", "k", "v", "o")}
    return parts | {"n1": r.norm(width), "up": r.linear(width, inner), "down": r.linear(inner, width), "n2": r.norm(width)}


def make_bert(r, batch, layers=12, width=768):
    w = {"word": r.normal(30522, width), "position": r.normal(512, width), "kind": r.normal(2, width), "n": r.norm(width)}
    w |= {"layers": [bert_layer(r, width, 4 * width) for _ in range(layers)], "pool": r.linear(width, width)}
    return w, [], [r.tokens(30522, batch, 128), r.tokens(2, batch, 128), np.ones((batch, 128), np.int32)]


def attend(P, x, w, heads, mask=None):
    q, k, v = (P.split_heads(P.linear(x, w[name]), heads) for name in ("q", "k", "v"))
    return P.linear(P.join_heads(P.attention(q, k, v, mask)), w["o"])


def bert_block(P, x, w, mask=None):
    x = P.layer_norm(x + attend(P, x, w, 12, mask), w["n1"], 1e-12)
    return P.layer_norm(x + P.linear(P.gelu(P.linear(x, w["up"])), w["down"]), w["n2"], 1e-12)


@model("bert_1", make_bert, batch=1)
@model("bert_8", make_bert, batch=8)
def bert(P, w, state, tokens, kinds, mask, batch):
    x = P.embed(w["word"], tokens) + w["position"][:128] + P.embed(w["kind"], kinds)
    x = P.layer_norm(x, w["n"], 1e-12)
    mask = ((1.0 - P.float(mask)) * -1e9)[:, None, None, :]
    for layer in w["layers"]:
        x = bert_block(P, x, layer, mask)
    return (x, P.tanh(P.linear(x[:, 0], w["pool"]))), state


LENGTH = 512


def make_cache(r, layers, heads, size):
    return [[r.normal(1, heads, LENGTH, size, scale=1.0) for _ in range(2)] for _ in range(layers)]


def make_gpt2(r, width=768, layers=12):
    layer = lambda: {
        "n1": r.norm(width),
        "qkv": r.linear(width, 3 * width),
        "o": r.linear(width, width),
        "n2": r.norm(width),
        "up": r.linear(width, 4 * width),
        "down": r.linear(4 * width, width),
    }
    w = {"word": r.normal(50257, width), "position": r.normal(1024, width), "layers": [layer() for _ in range(layers)], "n": r.norm(width)}
    return w, make_cache(r, layers, 12, 64), [r.tokens(50257, 1, 1), np.array(LENGTH - 1, np.int32)]


def cached(P, q, k, v, cache, position):
    """Attention of one token to those of the cache, and the cache with it."""
    keys, values = P.put(cache[0], k, position), P.put(cache[1], v, position)
    return P.attention(q, keys, values, P.until(position, LENGTH)), [keys, values]


@model("gpt2_step", make_gpt2)
@model("gpt2_step_bf16", make_gpt2)
def gpt2(P, w, state, token, position):
    x = P.embed(w["word"], token) + P.row(w["position"], position)
    caches = []
    for layer, cache in zip(w["layers"], state):
        parts = P.thirds(P.linear(P.layer_norm(x, layer["n1"], 1e-5), layer["qkv"]))
        a, cache = cached(P, *(P.split_heads(part, 12) for part in parts), cache, position)
        x = x + P.linear(P.join_heads(a), layer["o"])
        x = x + P.linear(P.gelu_tanh(P.linear(P.layer_norm(x, layer["n2"], 1e-5), layer["up"])), layer["down"])
        caches.append(cache)
    return P.float(P.times_transposed(P.layer_norm(x, w["n"], 1e-5), w["word"])), caches


def make_qwen(r, width=1024, layers=28, inner=3072):
    layer = lambda: {
        "n1": r.norm(width, ("scale",)),
        "q": r.linear(width, 2048, False),
        "k": r.linear(width, 1024, False),
        "v": r.linear(width, 1024, False),
        "qn": r.norm(128, ("scale",)),
        "kn": r.norm(128, ("scale",)),
        "o": r.linear(2048, width, False),
        "n2": r.norm(width, ("scale",)),
        "gate": r.linear(width, inner, False),
        "up": r.linear(width, inner, False),
        "down": r.linear(inner, width, False),
    }
    w = {"word": r.normal(151936, width), "layers": [layer() for _ in range(layers)], "n": r.norm(width, ("scale",))}
    return w, make_cache(r, layers, 8, 128), [r.tokens(151936, 1, 1), np.array(LENGTH - 1, np.int32)]


@model("qwen_step", make_qwen)
@model("qwen_step_bf16", make_qwen)
def qwen(P, w, state, token, position):
    x = P.embed(w["word"], token)
    turn = P.angles(position, 128, 1e6)
    caches = []
    for layer, cache in zip(w["layers"], state):
        y = P.rms_norm(x, layer["n1"])
        q, k, v = (P.split_heads(P.linear(y, layer[name]), heads) for name, heads in (("q", 16), ("k", 8), ("v", 8)))
        q, k = P.rotate(P.rms_norm(q, layer["qn"]), turn), P.rotate(P.rms_norm(k, layer["kn"]), turn)
        a, cache = cached(P, q, k, v, cache, position)
        x = x + P.linear(P.join_heads(a), layer["o"])
        y = P.rms_norm(x, layer["n2"])
        x = x + P.linear(P.silu(P.linear(y, layer["gate"])) * P.linear(y, layer["up"]), layer["down"])
        caches.append(cache)
    return P.float(P.times_transposed(P.rms_norm(x, w["n"]), w["word"])), caches


def make_whisper(r, width=512, layers=6):
    layer = lambda: bert_layer(r, width, 4 * width)
    w = {"c1": r.conv(3, 80, width), "c2": r.conv(3, width, width), "position": r.normal(1500, width), "layers": [layer() for _ in range(layers)]}
    return w | {"n": r.norm(width)}, [], [{"image": r.normal(1, 3000, 80, scale=1.0)}]


@model("whisper_encoder", make_whisper)
def whisper(P, w, state, sound):
    x = P.gelu(P.conv(sound["image"], w["c1"], 1, 1))
    x = P.channels_last(P.gelu(P.conv(x, w["c2"], 2, 1))) + w["position"]
    for layer in w["layers"]:
        x = x + attend(P, P.layer_norm(x, layer["n1"], 1e-5), layer, 8)
        x = x + P.linear(P.gelu(P.linear(P.layer_norm(x, layer["n2"], 1e-5), layer["up"])), layer["down"])
    return P.layer_norm(x, w["n"], 1e-5), state


# ---- images


def make_bottleneck(r, channels, inner, out, stride):
    w = {"c1": r.conv(1, 1, channels, inner, bias=False), "c2": r.conv(3, 3, inner, inner, bias=False), "c3": r.conv(1, 1, inner, out, bias=False)}
    w |= {"n1": r.batch_norm(inner), "n2": r.batch_norm(inner), "n3": r.batch_norm(out)}
    return w | {"c0": r.conv(1, 1, channels, out, bias=False), "n0": r.batch_norm(out)} if channels != out or stride != 1 else w


def make_resnet(r, batch):
    blocks, channels = [], 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for i in range(count):
            inner = 64 << stage
            blocks.append(make_bottleneck(r, channels, inner, 4 * inner, 2 if stage > 0 and i == 0 else 1))
            channels = 4 * inner
    w = {"c": r.conv(7, 7, 3, 64, bias=False), "n": r.batch_norm(64), "blocks": blocks, "out": r.linear(2048, 1000)}
    return w, [], [{"image": r.normal(batch, 224, 224, 3, scale=1.0)}]


def bottleneck(P, x, w, stride, norm):
    y = P.relu(norm(P.conv(x, w["c1"], 1, 0), w["n1"]))
    y = P.relu(norm(P.conv(y, w["c2"], stride, 1), w["n2"]))
    y = norm(P.conv(y, w["c3"], 1, 0), w["n3"])
    return P.relu(y + (norm(P.conv(x, w["c0"], stride, 0), w["n0"]) if "c0" in w else x))


@model("resnet50_1", make_resnet, batch=1)
@model("resnet50_8", make_resnet, batch=8)
def resnet(P, w, state, images, batch):
    x = P.max_pool(P.relu(P.batch_norm(P.conv(images["image"], w["c"], 2, 3), w["n"])), 3, 2, 1)
    for i, block in enumerate(w["blocks"]):
        x = bottleneck(P, x, block, 2 if i in (3, 7, 13) else 1, P.batch_norm)
    return P.linear(P.mean_space(x), w["out"]), state


def make_unet(r, channels=320):
    w = {"n1": r.norm(channels), "c1": r.conv(3, 3, channels, channels), "n2": r.norm(channels), "c2": r.conv(3, 3, channels, channels)}
    w |= {"time": r.linear(4 * channels, channels), "n3": r.norm(channels), "n4": r.norm(channels), "n5": r.norm(channels)}
    w |= {"q": r.linear(channels, channels), "k": r.linear(channels, channels), "v": r.linear(channels, channels), "o": r.linear(channels, channels)}
    w |= {"up": r.linear(channels, 8 * channels), "down": r.linear(4 * channels, channels)}
    return w, [], [{"image": r.normal(2, 32, 32, channels, scale=1.0)}, r.normal(2, 4 * channels, scale=1.0)]


@model("unet_block", make_unet)
def unet(P, w, state, images, time):
    """A residual block and a transformer's block of a denoiser of latent images."""
    x = images["image"]
    y = P.conv(P.silu(P.group_norm(x, w["n1"], 32)), w["c1"], 1, 1) + P.over_space(P.linear(P.silu(time), w["time"]))
    x = x + P.conv(P.silu(P.group_norm(y, w["n2"], 32)), w["c2"], 1, 1)
    y = P.points(P.group_norm(x, w["n3"], 32))
    y = y + attend(P, P.layer_norm(y, w["n4"], 1e-5), w, 8)
    up = P.linear(P.layer_norm(y, w["n5"], 1e-5), w["up"])
    y = y + P.linear(up[..., :1280] * P.gelu(up[..., 1280:]), w["down"])
    return x + P.unpoints(y, 32), state


# ---- a recurrent network


def make_lstm(r, batch=32, length=128, width=512):
    layer = lambda n: {"wx": r.normal(n, 4 * width, scale=n**-0.5), "wh": r.normal(width, 4 * width, scale=width**-0.5), "b": r.normal(4 * width)}
    return {"layers": [layer(256), layer(width)], "out": r.linear(width, 64)}, [], [r.normal(batch, length, 256, scale=1.0)]


@model("lstm", make_lstm)
def lstm(P, w, state, x):
    for layer in w["layers"]:
        x = P.lstm(x, layer)
    return P.linear(x, w["out"]), state


# ---- training steps: the state is the weights


def step(P, loss, state, *inputs):
    """The rate is so large that the next loss shows the step."""
    return P.descend(lambda w: loss(P, w, *inputs), state, 0.5)


def make_train_resnet(r):
    return [], make_bottleneck(r, 256, 64, 256, 1), [{"image": r.normal(8, 28, 28, 256, scale=1.0)}, {"image": r.normal(8, 28, 28, 256, scale=1.0)}]


@model("train_resnet_block", make_train_resnet, kind="training")
def train_resnet(P, w, state, x, wanted):
    loss = lambda P, w, x, wanted: P.mean(P.square(bottleneck(P, x["image"], w, 1, P.batch_norm_training) - wanted["image"]))
    return step(P, loss, state, x, wanted)


@model("train_transformer_layer", lambda r: ([], bert_layer(r, 768, 3072), [r.normal(8, 128, 768, scale=1.0) for _ in range(2)]), kind="training")
def train_transformer(P, w, state, x, wanted):
    return step(P, lambda P, w, x, wanted: P.mean(P.square(bert_block(P, x, w) - wanted)), state, x, wanted)


def make_train_mlp(r):
    sizes = (784, 512, 512, 10)
    return [], [r.linear(*pair) for pair in zip(sizes, sizes[1:])], [r.normal(128, 784, scale=1.0), r.tokens(10, 128)]


@model("train_mlp", make_train_mlp, kind="training")
def train_mlp(P, w, state, x, labels):
    def loss(P, w, x, labels):
        for layer in w[:-1]:
            x = P.relu(P.linear(x, layer))
        return P.cross_entropy(P.linear(x, w[-1]), labels)

    return step(P, loss, state, x, labels)
