#!/usr/bin/env python3
"""Makes the files beside it, of which tests/executor/data reads what other tools write: Pillow, NumPy, protoc.

Needs python3-pil, python3-numpy, protobuf-compiler. Run in its folder.
"""
import math
import pathlib
import subprocess

import numpy
from PIL import Image

WIDTH, HEIGHT = 48, 36


def picture():
    """Waves of three frequencies: scaling by another filter gives other values."""
    image = Image.new("RGB", (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            waves = (math.sin(x / 3), math.sin(y / 2), math.sin((x + y) / 5))
            image.putpixel((x, y), tuple(round(127.5 + 120 * wave) for wave in waves))
    return image


def raw(name, image):
    pathlib.Path(name).write_bytes(image.tobytes())


image = picture()
image.save("photo.png")
raw("photo.rgb", image)
raw("photo-grey.bin", image.convert("L"))
image.quantize(16).save("palette.png")
raw("palette.rgb", image.quantize(16).convert("RGB"))
with_alpha = image.convert("RGBA")
with_alpha.putalpha(Image.linear_gradient("L").resize((WIDTH, HEIGHT)))
with_alpha.save("alpha.png")
image.save("photo.jpg", quality=90)
raw("photo.jpg.rgb", Image.open("photo.jpg").convert("RGB"))
image.save("progressive.jpg", quality=90, progressive=True)
image.convert("L").save("grey.jpg", quality=90)
image.convert("CMYK").save("cmyk.jpg", quality=95)
raw("cmyk.jpg.rgb", Image.open("cmyk.jpg").convert("RGB"))
# Smaller by 1.7, and larger by 2, of a part.
raw("shrunk-20x14.rgb", image.resize((20, 14), Image.BILINEAR, box=(7, 5, 41, 29)))
raw("grown-20x14.rgb", image.crop((11, 9, 21, 16)).resize((20, 14), Image.BILINEAR))
# Scaled to 18 on the shorter side, 16 x 12 of the middle: torchvision's Resize(18), CenterCrop((12, 16)).
raw("center-16x12.rgb", image.resize((24, 18), Image.BILINEAR).crop((4, 3, 20, 15)))

tokens = (numpy.arange(37) * 7 % 50).astype("<u2")
numpy.save("tokens-u2.npy", tokens)
numpy.save("tokens-i4.npy", tokens.astype("<i4"))
numpy.save("tokens-i8.npy", tokens.astype("<i8"))
numpy.save("two-dimensions.npy", tokens[:36].reshape(6, 6))
numpy.save("big-endian.npy", tokens.astype(">u2"))
numpy.save("floats.npy", tokens.astype("<f4"))

SCHEMA = """syntax = "proto3";
message BytesList { repeated bytes value = 1; }
message FloatList { repeated float value = 1 [packed = true]; }
message Int64List { repeated int64 value = 1 [packed = true]; }
message Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
message Features { map<string, Feature> feature = 1; }
message Example { Features features = 1; }
"""
EXAMPLE = """features {
  feature { key: "image/height" value { int64_list { value: 36 } } }
  feature { key: "image/object/area" value { float_list { value: 0.25 value: 0.5 } } }
  feature { key: "image/encoded" value { bytes_list { value: "the bytes" } } }
  feature { key: "image/filename" value { bytes_list { value: "a.jpg" } } }
  feature { key: "image/class/label" value { int64_list { value: 300 } } }
}"""
pathlib.Path("example.proto").write_text(SCHEMA)
encoded = subprocess.run(["protoc", "--encode=Example", "example.proto"], input=EXAMPLE.encode(), check=True,
                         capture_output=True).stdout
pathlib.Path("example.pb").write_bytes(encoded)
pathlib.Path("example.proto").unlink()
