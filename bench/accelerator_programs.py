"""What XLA's compiler for a GPU makes of our programs and of JAX's, without a GPU: whether the kernels are the same.

    pip install "jax[cuda13]" && python3 bench/accelerator_programs.py tessera-opt FOLDER [NAME ...]

FOLDER has the graphs that tessera_accelerator:write/1 wrote. A line for each program: "same", or the first line of the compiled modules that differs.
XLA chooses among kernels for a product by timing them on the GPU; without one it takes the first. So "same" says that both begin with the same choice.
"""
import contextlib
import difflib
import os
import re
import subprocess
import sys

# The plugin's check of the driver needs a GPU.
os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
os.environ["JAX_PLATFORMS"] = "cuda,cpu"

import jax
import jaxlib._hlo
import numpy
from jax._src import xla_bridge
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir

import peer_accelerator

# An H100 (SXM, 80 GB) by its data sheet, in the words of XLA's GpuTargetConfigProto.
H100 = """
gpu_device_info {
  threads_per_block_limit: 1024  threads_per_warp: 32  threads_per_core_limit: 2048  core_count: 132  fpus_per_core: 128
  shared_memory_per_block: 49152  shared_memory_per_core: 233472  shared_memory_per_block_optin: 232448
  block_dim_limit_x: 2147483647  block_dim_limit_y: 65535  block_dim_limit_z: 65535
  registers_per_core_limit: 65536  registers_per_block_limit: 65536
  memory_bandwidth: 3352320000000  l2_cache_size: 52428800  clock_rate_ghz: 1.98  device_memory_size: 84942979072
  cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES }
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
OPTIONS = {"xla_gpu_autotune_level": 0}


def target():
    topology = xla_bridge.make_pjrt_topology("cuda", "h100", target_config=H100, topology="1x1x1")
    return topology._make_compile_only_devices()[0]


def text(module):
    """Without names, places in a source and shardings over one device."""
    options = jaxlib._hlo.HloPrintOptions.fingerprint()
    options.print_metadata = False
    options.print_backend_config = True
    body = module.to_string(options)
    body = body[body.index("ENTRY"):]
    return re.sub(r", (frontend_attributes=\{[^\n]*\}|sharding=\{[^\n]*?\}+)(?=\n|,)", "", body).splitlines()


def compile_jax(device, name, f, make):
    sharding = jax.sharding.SingleDeviceSharding(device)
    with peer_accelerator.precision(name):
        lowered = jax.jit(f, in_shardings=sharding, out_shardings=sharding).lower(*make())
    return lowered.compile(compiler_options=OPTIONS).runtime_executable().hlo_modules()[0]


def compile_ours(device, name, tool, folder):
    program = subprocess.run([tool, "--accelerator", "--pass=guard,fold", os.path.join(folder, name + ".graph")],
                             check=True, capture_output=True, text=True).stdout
    if name.endswith("_fast"):
        program = program.replace("precision HIGHEST", "precision DEFAULT")
    options = xla_client.CompileOptions()
    options.device_assignment = xla_client.DeviceAssignment.create(numpy.array([[0]]))
    options.env_option_overrides = list(OPTIONS.items())
    with mlir.make_ir_context():
        devices = xla_client.DeviceList((device,))
        compiled = device.client.compile(ir.Module.parse(program), executable_devices=devices, compile_options=options)
    return compiled.hlo_modules()[0]


def count_kernels(lines):
    """Ops of the entry computation that are launches, beside parameters, results and views."""
    ops = [re.match(r"  (?:ROOT )?\S+ = .*?[\]})] ([a-z][a-z-]*)\(", line) for line in lines]
    return sum(op is not None and op[1] not in ("parameter", "tuple", "get-tuple-element", "constant", "bitcast") for op in ops)


def compare(ours, theirs):
    differences = difflib.unified_diff(theirs, ours, lineterm="", n=0)
    lines = [line for line in differences if not line.startswith(("---", "+++", "@@"))]
    if not lines:
        return "same"
    first = [next((line[:160] for line in lines if line.startswith(sign)), sign + " none") for sign in "-+"]
    return "%d kernels, JAX %d; %d of %d lines differ, first JAX's, then ours:\n    %s" % (
        count_kernels(ours), count_kernels(theirs), len(lines), len(theirs) + len(ours), "\n    ".join(first))


def main(tool, folder, *names):
    peer_accelerator.made = lambda shape, dtype=jax.numpy.float32: jax.ShapeDtypeStruct(shape, dtype)
    device = target()
    known = [name for name, _, _ in peer_accelerator.WORKLOADS]
    with contextlib.suppress(BrokenPipeError):
        for name, f, make in peer_accelerator.WORKLOADS:
            if names and name not in names:
                continue
            ours, theirs = compile_ours(device, name, tool, folder), compile_jax(device, name, f, make)
            print("%-28s %s" % (name, compare(text(ours), text(theirs))), flush=True)
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit("no such program: %s" % ", ".join(unknown))


if __name__ == "__main__":
    main(*sys.argv[1:])
