"""Reads a safetensors file by the format's specification alone, with nothing but Python.

read_safetensors.py FILE           its tensors: name, type, global shape, the slice that the file holds
read_safetensors.py FILE NAME      the numbers of one of them, which are F32
"""
import array
import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    raw = file.read()
(length,) = struct.unpack("<Q", raw[:8])
header = json.loads(raw[8 : 8 + length])
data = raw[8 + length :]
metadata = header.pop("__metadata__")
assert raw[8:9] == b"{" and length <= 100_000_000 and (8 + length) % 8 == 0
assert all(isinstance(text, str) for text in metadata.values())
ours = json.loads(metadata["reckon"])["tensors"]

end = 0
for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    begin, shape = tensor["data_offsets"][0], tensor["shape"]
    assert begin == end, f"{name}: a hole or an overlap"
    end = tensor["data_offsets"][1]
    if len(sys.argv) == 2:
        offset = ours[name]["offset"]
        cut = ", ".join(f"{a}:{a + n}" for a, n in zip(offset, shape))
        print(f"{name:<54} {tensor['dtype']}  {ours[name]['global_shape']}  [{cut}]")
    elif name == sys.argv[2]:
        values = array.array("f", data[begin:end])
        print(*values)
assert end == len(data), "bytes behind the last tensor"
