# Makes the files of this folder, by NumPy, and by the packages safetensors, gguf and ml_dtypes of PyPI. tessera_io_tests reads them.
import os
import zlib

import gguf
import ml_dtypes
import numpy as np
import safetensors.numpy
from gguf import GGMLQuantizationType as Type

here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(7)


def path(name):
    return os.path.join(here, name)


# What each array must be: its name, its shape, and the CRC-32 of its bytes in native order.
def expected(name, arrays):
    with open(path(name), "w") as file:
        for key, array in arrays.items():
            bytes_ = np.array(array.astype(array.dtype.newbyteorder("=")), order="C").tobytes()
            shape = ",".join(str(size) for size in array.shape)
            file.write(f'{{<<"{key}">>,{{{shape}}},{zlib.crc32(bytes_)}}}.\n')


types = ["u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "?", ">f4", ">c16", ">i2"]
shapes = [(), (3,), (2, 3), (0, 4), (3, 1, 2)]
arrays = {}
for i, code in enumerate(types):
    for j, shape in enumerate(shapes):
        array = (rng.standard_normal(shape) * 50).astype(code)
        arrays[f"{i}_{j}"] = np.asfortranarray(array) if j == 4 else array
np.savez(path("stored.npz"), **arrays)
np.savez_compressed(path("deflated.npz"), **arrays)
np.save(path("fortran.npy"), np.asfortranarray(np.arange(6, dtype=">f4").reshape(2, 3)))
expected("arrays.txt", arrays)

own = {k: np.array(v, order="C") for k, v in arrays.items() if v.dtype.str[0] != ">" and v.dtype != np.complex128}
own["bf16"] = np.arange(4).astype(ml_dtypes.bfloat16)
own["f8"] = np.arange(5).astype(ml_dtypes.float8_e5m2)
own["f8_e4m3fn"] = np.arange(6).astype(ml_dtypes.float8_e4m3fn)
safetensors.numpy.save_file(own, path("packages.safetensors"), metadata={"who": 'a "name" \u00e9\n'})
expected("safetensors.txt", own)

writer = gguf.GGUFWriter(path("blocks.gguf"), "test")
writer.add_uint32("test.count", 7)
writer.add_array("test.names", ["a", "b\u00e9"])
writer.add_float32("test.number", 1.5)
halves = {
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q8_0: [0],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
}
values = {}
for form, places in halves.items():
    elements, size = gguf.GGML_QUANT_SIZES[form]
    blocks = rng.integers(0, 256, (4, size), dtype=np.uint8)
    for place in places:
        blocks[:, place : place + 2] = (rng.standard_normal((4, 1)) * 0.1).astype(np.float16).view(np.uint8)
    writer.add_tensor(form.name, blocks.reshape(2, 2 * size), raw_dtype=form)
    values[form.name] = gguf.quants.dequantize(blocks, form).reshape(2, 2 * elements)
values["f16"] = rng.standard_normal(3).astype("f2")
values["i32"] = np.arange(6, dtype="i4").reshape(1, 2, 3)
for name in ["f16", "i32"]:
    writer.add_tensor(name, values[name])
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
expected("gguf.txt", values)
