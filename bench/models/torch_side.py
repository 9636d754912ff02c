"""The operations of torch for programs.py: images have channels first. TorchPeer runs a model op by op; OnnxPeer and OpenvinoPeer run what torch.onnx
exports, with the weights as constants and batch norms folded by them. A cache that is exported is joined anew instead of written in place."""

import logging
import os

import numpy as np
import torch
import torch.nn.functional as F


class P:
    exporting = False
    gelu, silu, relu, tanh, square, mean = map(staticmethod, (F.gelu, F.silu, F.relu, torch.tanh, torch.square, torch.mean))
    gelu_tanh = staticmethod(lambda x: F.gelu(x, approximate="tanh"))
    layer_norm = staticmethod(lambda x, w, eps: F.layer_norm(x, x.shape[-1:], w["scale"], w["b"], eps))
    rms_norm = staticmethod(lambda x, w: F.rms_norm(x, x.shape[-1:], w["scale"], 1e-6))
    linear = staticmethod(lambda x, w: F.linear(x, w["w"], w.get("b")))
    times_transposed = staticmethod(F.linear)
    float = staticmethod(lambda x: x.float())
    embed = staticmethod(lambda table, tokens: F.embedding(tokens, table))
    row = staticmethod(lambda table, index: table[index][None])
    thirds = staticmethod(lambda x: x.chunk(3, -1))
    split_heads = staticmethod(lambda x, heads: x.view(*x.shape[:2], heads, -1).transpose(1, 2))
    join_heads = staticmethod(lambda x: x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1))
    until = staticmethod(lambda position, length: torch.where(torch.arange(length) <= position, 0.0, -1e9).view(1, 1, 1, -1))
    batch_norm = staticmethod(lambda x, w: F.batch_norm(x, w["mean"], w["var"], w["scale"], w["b"]))
    batch_norm_training = staticmethod(lambda x, w: F.batch_norm(x, None, None, w["scale"], w["b"], training=True))
    group_norm = staticmethod(lambda x, w, groups: F.group_norm(x, groups, w["scale"], w["b"]))
    max_pool = staticmethod(F.max_pool2d)
    mean_space = staticmethod(lambda x: x.mean((2, 3)))
    over_space = staticmethod(lambda x: x[:, :, None, None])
    points = staticmethod(lambda x: x.flatten(2).transpose(1, 2))
    unpoints = staticmethod(lambda x, size: x.transpose(1, 2).reshape(x.shape[0], -1, size, size))
    channels_last = staticmethod(lambda x: x.transpose(1, 2))
    cross_entropy = staticmethod(lambda logits, labels: F.cross_entropy(logits, labels.long()))

    @staticmethod
    def attention(q, k, v, mask=None):
        if mask is not None:
            mask = mask.to(q.dtype)
        if P.exporting and q.shape[1] != k.shape[1]:
            k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
        return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=q.shape[1] != k.shape[1])

    @staticmethod
    def put(cache, new, position):
        if P.exporting:
            return torch.cat([cache[:, :, :-1], new], 2)
        return cache.index_copy_(2, position.view(1).long(), new)

    @staticmethod
    def angles(position, size, base):
        angle = (position * base ** (torch.arange(0, size, 2) / -size)).repeat(2)
        return torch.cos(angle), torch.sin(angle)

    @staticmethod
    def rotate(x, turn):
        a, b = x.chunk(2, -1)
        return (x * turn[0] + torch.cat([-b, a], -1) * turn[1]).to(x.dtype)

    @staticmethod
    def conv(x, w, stride, padding):
        return (F.conv2d if x.ndim == 4 else F.conv1d)(x, w["kernel"], w.get("b"), stride, padding)

    @staticmethod
    def lstm(x, w):
        size = w["wh"].shape[1]
        start = torch.zeros(1, x.shape[0], size)
        return torch.lstm(x, (start, start), [w["wx"], w["wh"], w["b"], torch.zeros_like(w["b"])], True, 1, 0.0, False, False, True)[0]

    @staticmethod
    def descend(loss, w, rate):
        value = loss(w)
        value.backward()
        with torch.no_grad():
            for leaf in leaves(w):
                if leaf.grad is not None:
                    leaf -= rate * leaf.grad
                    leaf.grad = None
        return value.detach(), w


def leaves(tree):
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (list, tuple)) else None
    return [tree] if parts is None else [leaf for part in parts for leaf in leaves(part)]


def rebuilt(f, tree, name=""):
    if isinstance(tree, dict):
        return {key: rebuilt(f, part, key) for key, part in tree.items()}
    return [rebuilt(f, part, name) for part in tree] if isinstance(tree, (list, tuple)) else f(tree, name)


def placed(leaf, name):
    """In torch's layout: {out, in} of products and convolutions, channels before space."""
    if name in ("w", "wx", "wh"):
        leaf = leaf.T
    elif name == "kernel":
        leaf = np.moveaxis(leaf, (-1, -2), (0, 1))
    elif name == "image":
        leaf = np.moveaxis(leaf, -1, 1)
    return torch.from_numpy(np.array(leaf, order="C"))


def made(model):
    given = rebuilt(placed, model["make"]())
    return rebuilt(lambda x, _: x.bfloat16() if model["narrow"] and x.is_floating_point() else x, given)


class Peer:
    @staticmethod
    def values(value):
        """As JAX's results: images with channels last."""
        value = [leaf.float().numpy() if torch.is_tensor(leaf) else np.array(leaf) for leaf in leaves(value)]
        return [np.moveaxis(leaf, 1, -1) if leaf.ndim == 4 else leaf for leaf in value]


class TorchPeer(Peer):
    def __init__(self, model, folder):
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        self.w, self.state, self.inputs = made(model)
        self.training = model["kind"] == "training"
        for leaf in leaves(self.state) if self.training else []:
            leaf.requires_grad_()
        self.f = model["f"]

    def call(self):
        with torch.set_grad_enabled(self.training):
            value, self.state = self.f(P, self.w, self.state, *self.inputs)
        return value


class Exported(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        w, self.state, self.inputs = made(model | {"narrow": False})
        flat = leaves(w)
        for i, leaf in enumerate(flat):
            self.register_buffer(f"w{i}", leaf)
        self.tree, self.f = w, model["f"]

    def forward(self, *given):
        buffers, given = iter(self.buffers()), iter(given)
        w = rebuilt(lambda *_: next(buffers), self.tree)
        state, inputs = (rebuilt(lambda *_: next(given), tree) for tree in (self.state, self.inputs))
        value, state = self.f(P, w, state, *inputs)
        return tuple(leaves(value) + leaves(state))


def exported(model, folder):
    """The path of the ONNX file, the arguments, and how many of them are state."""
    path = os.path.join(folder, "model.onnx")
    module = Exported(model).eval()
    given = tuple(leaves(module.state) + leaves(module.inputs))
    if not os.path.exists(path):
        P.exporting = True
        logging.disable(logging.WARNING)  # that torchvision is not there
        with torch.no_grad():
            torch.onnx.export(module, given, path + ".part", external_data=True, verbose=False)
        os.rename(path + ".part", path)
    return path, [leaf.numpy() for leaf in given], len(leaves(module.state))


class OnnxPeer(Peer):
    def __init__(self, model, folder):
        import onnxruntime

        path, given, self.states = exported(model, folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.names = [[x.name for x in side] for side in (self.session.get_inputs(), self.session.get_outputs())]
        self.given = [onnxruntime.OrtValue.ortvalue_from_numpy(x) for x in given]

    def call(self):
        for name, x in zip(self.names[0], self.given):
            self.binding.bind_ortvalue_input(name, x)
        for name in self.names[1]:
            self.binding.bind_output(name)
        self.session.run_with_iobinding(self.binding)
        results = self.binding.get_outputs()
        count = len(results) - self.states
        self.given[: self.states] = results[count:]
        return [x.numpy() for x in results[:count]]


class OpenvinoPeer(Peer):
    def __init__(self, model, folder):
        import openvino

        path, self.given, self.states = exported(model, folder)
        core = openvino.Core()
        settings = {"INFERENCE_NUM_THREADS": len(os.sched_getaffinity(0)), "PERFORMANCE_HINT": "LATENCY"}
        settings["INFERENCE_PRECISION_HINT"] = "bf16" if model["narrow"] else "f32"
        settings["KV_CACHE_PRECISION"] = "bf16" if model["narrow"] else "f32"
        self.request = core.compile_model(core.read_model(path), "CPU", settings).create_infer_request()
        self.tensors = [openvino.Tensor(x, shared_memory=True) for x in self.given]

    def call(self):
        for i, tensor in enumerate(self.tensors):
            self.request.set_input_tensor(i, tensor)
        self.request.infer()
        count = len(self.request.output_tensors) - self.states
        ends = [self.request.get_output_tensor(i) for i in range(len(self.request.output_tensors))]
        # The memory of the cache that was read is that of the next one's results.
        for i in range(self.states):
            self.request.set_output_tensor(count + i, self.tensors[i])
            self.tensors[i] = ends[count + i]
        return [tensor.data for tensor in ends[:count]]
