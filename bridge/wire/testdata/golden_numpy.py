"""Writes golden/numpy.json: frames as msgpack-numpy 0.4.8 packs them.

    python3 testdata/golden_numpy.py > testdata/golden/numpy.json       (needs numpy, msgpack 1.x, msgpack-numpy 0.4.8)
    python3 testdata/golden_numpy.py read golden-file …                 reads the mpnp frames of other golden files with it

The second form says for every frame whether msgpack-numpy reads from it what the file says.
"""

import json
import math
import sys

import msgpack
import msgpack_numpy
import numpy as np

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64 float16".split()


def number(x):
    if isinstance(x, (bool, np.bool_)):
        return bool(x)
    if isinstance(x, (int, np.integer)):
        return int(x)
    x = float(x)
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return x


def describe(v):
    """The value's description, as README.md beside the golden files has it."""
    if isinstance(v, (np.ndarray, np.generic)) and not isinstance(v, float):  # a float64 is packed as a float
        v = np.asarray(v)
        return {"$array": v.dtype.name, "shape": list(v.shape), "data": [number(x) for x in v.ravel()]}
    if isinstance(v, float):
        x = number(v)
        return {"$float": x} if isinstance(x, str) else x
    if isinstance(v, bytes):
        return {"$bin": v.hex()}
    if isinstance(v, (list, tuple)):
        return [describe(x) for x in v]
    if isinstance(v, dict):
        return {k: describe(x) for k, x in v.items()}
    return v


def cases():
    for name in DTYPES:
        d = np.dtype(name)
        if d.kind == "b":
            v = np.array([[True, False, True], [False, False, True]])
        elif d.kind in "iu":
            i = np.iinfo(d)
            v = np.array([[i.min, 0, 1], [2, 3, i.max]], d)
        else:
            # Few digits are needed to tell these from their neighbours in any of the types.
            v = np.array([[0, -1.5, 0.25], [np.inf, -np.inf, np.nan]], d)
        yield name, v
        yield name + "-fortran", np.asfortranarray(v)
        yield name + "-scalar", v[1, 1]
        yield name + "-0d", np.array(v[0, 1])
        yield name + "-none", v[:0]
    yield "8d", np.arange(2, dtype="i2").reshape((1,) * 7 + (2,))
    yield "300", np.arange(300, dtype="u1")


def write():
    out = []
    for name, v in cases():
        frame = msgpack.packb({"a": v, "b": [v, 1]}, default=msgpack_numpy.encode)
        case = {"name": name, "enc": "mpnp", "hex": frame.hex()}
        if isinstance(v, np.generic) and not isinstance(v, float):
            case["decode_only"] = True
        case["value"] = describe({"a": v, "b": [v, 1]})
        out.append(json.dumps(case))
    print("[\n" + ",\n".join(out) + "\n]")


def number_back(x):
    return float(x) if isinstance(x, str) else x


def same(got, want):
    if isinstance(want, dict) and "$array" in want:
        a = np.array([number_back(x) for x in want["data"]], want["$array"]).reshape(want["shape"])
        if isinstance(got, np.generic) and a.shape == ():
            got = np.asarray(got)
        return isinstance(got, np.ndarray) and got.dtype == a.dtype and got.shape == a.shape and got.tobytes() == a.tobytes()
    if isinstance(want, dict) and "$float" in want:
        return np.array(got).tobytes() == np.array(float(want["$float"])).tobytes()
    if isinstance(want, dict) and "$bin" in want:
        return got == bytes.fromhex(want["$bin"])
    if isinstance(want, dict):
        return isinstance(got, dict) and list(got) == list(want) and all(same(got[k], want[k]) for k in want)
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    return type(got) is type(want) and got == want


def read(paths):
    count = wrong = 0
    for path in paths:
        for case in json.load(open(path, encoding="utf-8")):
            if case["enc"] != "mpnp":
                continue
            frame = bytes.fromhex(case["hex"])
            got = msgpack.unpackb(frame, object_hook=msgpack_numpy.decode)
            count += 1
            ok = same(got, case["value"])
            if ok and not case.get("decode_only"):
                ok = msgpack.packb(got, default=msgpack_numpy.encode) == frame
            if not ok:
                wrong += 1
                print(path, case["name"], "differs")
    print(f"{count} frames, {wrong} differ")
    return wrong


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        sys.exit(1 if read(sys.argv[2:]) else 0)
    write()
