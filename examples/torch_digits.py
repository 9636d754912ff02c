"""Trains a small network on handwritten digits in PyTorch, and writes what serves it without Python: python3 examples/torch_digits.py

  data/torch_digits.vhlo                  the network as a portable artifact of StableHLO, for a batch of any size
  data/torch_digits.safetensors           its weights, by the names that the model has for them
  data/torch_digits_answers.safetensors   some digits and what PyTorch answers

Needs torch, torchax, jax and safetensors; torchax 0.0.13 works with torch up to 2.12. torch_digits.erl serves these files."""
import gzip
import os

import jax
import numpy as np
import torch
from jax import export
from safetensors.numpy import save_file
from torchax.export import exported_program_to_jax

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
LEARN = 1500  # of 1797 digits
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")  # the artifact has names of files, not their folders


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.hidden = torch.nn.Linear(128, 32)
        self.output = torch.nn.Linear(32, 10)

    def forward(self, x):
        x = x.reshape(-1, 1, 8, 8) / 16
        x = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.convolution(x))), 2)
        x = torch.nn.functional.gelu(self.hidden(x.flatten(1)))
        return torch.softmax(self.output(x), 1)


def digits():
    with gzip.open(os.path.join(DATA, "digits.csv.gz"), "rt") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.int32)
    return rows[:, :64].astype(np.float32), rows[:, 64]


def trained(x, y, epochs=30, batch=50):
    torch.manual_seed(1)
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    x, y = torch.from_numpy(x), torch.from_numpy(y).long()
    for _ in range(epochs):
        for part in torch.randperm(len(x)).reshape(-1, batch):
            optimizer.zero_grad()
            torch.nn.functional.nll_loss(torch.log(network(x[part]) + 1e-9), y[part]).backward()
            optimizer.step()
    return network.eval()


def main():
    x, y = digits()
    network = trained(x[:LEARN], y[:LEARN])
    program = torch.export.export(network, (torch.from_numpy(x[:2]),), dynamic_shapes=({0: torch.export.Dim("batch")},))
    weights, run = exported_program_to_jax(program)

    # The weights are arguments, in the order of their names; then come the digits.
    names = [*program.graph_signature.parameters, *program.graph_signature.buffers]
    named = {name: np.asarray(weight) for name, weight in zip(names, weights, strict=True)}

    def by_name(named, x):
        return run([named[name] for name in names], (x,))[0]

    shape = jax.ShapeDtypeStruct(export.symbolic_shape("batch, 64"), np.float32)
    exported = export.export(jax.jit(by_name, keep_unused=True), platforms=["cpu"])(named, shape)
    with open(os.path.join(DATA, "torch_digits.vhlo"), "wb") as file:
        file.write(exported.mlir_module_serialized)
    save_file(named, os.path.join(DATA, "torch_digits.safetensors"))
    with torch.no_grad():
        guessed = network(torch.from_numpy(x[LEARN:])).numpy()
    save_file({"digits": x[LEARN : LEARN + 16], "answers": guessed[:16]}, os.path.join(DATA, "torch_digits_answers.safetensors"))
    right = np.mean(np.argmax(guessed, 1) == y[LEARN:])
    print(f"{100 * right:.1f} % of {len(guessed)} digits that it has not seen are right")


if __name__ == "__main__":
    main()
