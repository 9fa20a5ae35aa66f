"""Bytes and values: the golden files that all ends of the protocol share, and what must be refused."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from gymnasium import spaces

from clustergym import ProtocolError
from clustergym.codec import ARRAY_EXT, array_prefix, decode, encode, unpack_array
from clustergym.spaces import Batch, graphs, parse_space

GOLDEN = Path(__file__).parents[2] / "bridge/wire/testdata/golden"


def golden(enc: str = "ext") -> list[Any]:
    cases = []
    for path in sorted(GOLDEN.glob("*.json")):
        for case in json.loads(path.read_text()):
            if case["enc"] == enc:
                cases.append(pytest.param(case, id=f"{path.stem}-{case['name']}"))
    return cases


def described(value: Any) -> Any:
    """A decoded value as the golden files describe it."""
    if isinstance(value, np.ndarray):
        flat = value.ravel()
        if value.dtype.itemsize < 8 and value.dtype.kind == "f":
            # Written with as many digits as a float32 needs.
            data = [spelled(float(str(x))) for x in flat.astype(np.float32)]
        else:
            data = [spelled(x) for x in flat.tolist()]
        return {"$array": value.dtype.name, "shape": list(value.shape), "data": data}
    if isinstance(value, bytes):
        return {"$bin": value.hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": spelled(value)}
    if isinstance(value, dict):
        return {key: described(v) for key, v in value.items()}
    if isinstance(value, list):
        return [described(v) for v in value]
    return value


def spelled(x: Any) -> Any:
    if isinstance(x, float) and not math.isfinite(x):
        return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
    return x


def same(a: Any, b: Any) -> bool:
    """Equality that tells 1 from 1.0 and True, and -0.0 from 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return a == b


def test_there_are_golden_files() -> None:
    assert len(golden()) > 50


@pytest.mark.parametrize("case", golden())
def test_golden_frames_are_read_as_described_and_written_back_byte_for_byte(case: dict[str, Any]) -> None:
    frame = bytes.fromhex(case["hex"])
    value = decode(frame)
    assert same(described(value), case["value"])
    if not case.get("decode_only"):
        assert encode(value).hex() == case["hex"]


@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "f2"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (2, 3), (1, 1, 5), (1,) * 8, (40, 50)])
def test_arrays_survive_the_wire(dtype: str, shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    b = decode(encode({"a": a, "l": [a, {"m": a}]}))
    for got in (b["a"], b["l"][0], b["l"][1]["m"]):
        assert got.dtype == a.dtype
        assert got.shape == a.shape
        assert (got == a).all()
        assert not got.flags.writeable


def test_arrays_that_lie_otherwise_in_memory_are_sent_in_c_order_and_little_endian() -> None:
    a = np.arange(6, dtype=">i4").reshape(2, 3)
    for odd in (a, a.T, a[:, ::2], np.asfortranarray(a)):
        got = decode(encode({"a": odd}))["a"]
        assert (got == odd).all()
        assert got.dtype == np.int32


def test_decoded_arrays_do_not_refer_to_the_frame() -> None:
    frame = bytearray(encode({"a": np.arange(4)}))
    a = decode(memoryview(frame))["a"]
    frame[-32:] = b"\xff" * 32
    assert a.tolist() == [0, 1, 2, 3]


def test_numpy_scalars_are_sent_as_numbers() -> None:
    assert decode(encode({"i": np.int8(3), "f": np.float32(0.5), "b": np.bool_(True)})) == {"i": 3, "f": 0.5, "b": True}


@pytest.mark.parametrize("value", [object(), {1, 2}.__iter__, 1 << 64, np.array(["a"]), np.array([1j]), "\ud800"])
def test_what_the_protocol_has_no_place_for_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, UnicodeError)):
        encode({"v": value})


PAYLOAD = struct.pack("<BBHI", 10, 1, 0, 2) + b"\0" * 8


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"", "at least 8"),
        (b"\x0a\x01\0\0", "at least 8"),
        (b"\x00" + PAYLOAD[1:], "dtype code is 0"),
        (b"\x0d" + PAYLOAD[1:], "dtype code is 13"),
        (b"\xff" + PAYLOAD[1:], "dtype code is 255"),
        (PAYLOAD[:1] + b"\x09" + PAYLOAD[2:], "9 dimensions"),
        (PAYLOAD[:1] + b"\x08" + PAYLOAD[2:], "cut short"),
        (PAYLOAD[:2] + b"\x01" + PAYLOAD[3:], "flags"),
        (PAYLOAD[:-1], "bytes, want 16"),
        (PAYLOAD + b"\0", "bytes, want 16"),
        (struct.pack("<BBHI", 10, 1, 0, 0xFFFFFFFF), "bytes, want"),
        (struct.pack("<BBH8I", 11, 8, 0, *[0xFFFFFFFF] * 8) + b"\0" * 4, "bytes, want"),
        (struct.pack("<BBHII", 3, 2, 0, 1, 1) + b"\0\0\1\0" + b"\0", "padding"),
    ],
)
def test_wrong_arrays_are_refused_in_words(payload: bytes, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        unpack_array(payload)
    with pytest.raises(ProtocolError, match=words):
        decode(msgpack.packb({"a": msgpack.ExtType(ARRAY_EXT, payload)}))


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xc1",
        b"\x80\x80",
        b"\x93\x01\x02\x03",
        b"\x81\x01\x02",
        b"\x81\xa1a",
        b"\x81\xa1a\xc7\x04\x05abcd",
        b"\x81\xa1a\xd9\xff",
        b"\x81\xa1\xff\x01",
        b"\x81\xa1a\xdd\xff\xff\xff\xff",
        b"\x81\xa1a\xdf\xff\xff\xff\xff",
        b"\x81\xa1a\xc6\xff\xff\xff\xff",
        b"\x81\xa1a\xc9\xff\xff\xff\xffN",
        b"\x81\xa1a" + b"\x91" * 5000,
        b"\x81\xa1a" + b"\xdd\x00\x0f\xff\xff" * 900,
    ],
)
def test_unreadable_frames_are_refused(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(frame)


def test_random_bytes_are_refused_or_read_but_never_fail_otherwise() -> None:
    rng = np.random.default_rng(1)
    whole = bytearray(encode({"re": 1, "op": "step", "obs": {"x": np.zeros((3, 4), np.float32)}, "r": np.zeros(3)}))
    for _ in range(3000):
        frame = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            frame[rng.integers(len(frame))] = rng.integers(256)
        try:
            decode(bytes(frame[: rng.integers(1, len(frame) + 1)]))
        except ProtocolError:
            pass


def test_prefixes_are_those_of_msgpack() -> None:
    for n in (0, 1, 2, 8, 15, 16, 247, 248, 300, 70000):
        a = np.zeros(n, np.uint8)
        whole = array_prefix(a.dtype, a.shape) + a.tobytes()
        assert msgpack.unpackb(whole) == msgpack.ExtType(ARRAY_EXT, whole[-(8 + n) :])


# Spaces.


@pytest.mark.parametrize("case", [c for c in golden() if c.id.startswith("spaces-")])
def test_golden_spaces_become_gymnasium_spaces(case: dict[str, Any]) -> None:
    value = decode(bytes.fromhex(case["hex"]))
    found = [v for v in value.values() if isinstance(v, dict) and "t" in v]
    for g in found or [value]:
        space = parse_space(g)
        assert isinstance(space, spaces.Space)
        if not isinstance(space, spaces.Graph):
            assert space.sample() in space


def test_spaces_are_exactly_what_is_described() -> None:
    assert parse_space({"t": "box", "shape": [2], "dtype": "float32", "low": -1.0, "high": None}) == spaces.Box(
        np.float32(-1), np.float32(np.inf), (2,), np.float32
    )
    assert parse_space(
        {"t": "box", "shape": [2], "dtype": "uint8", "low": [0, 1], "high": np.array([2, 3])}
    ) == spaces.Box(np.array([0, 1], np.uint8), np.array([2, 3], np.uint8), (2,), np.uint8)
    assert parse_space({"t": "discrete", "n": 4, "start": 2, "dtype": "int64"}) == spaces.Discrete(4, start=2)
    assert parse_space({"t": "mdiscrete", "nvec": [2, 3], "dtype": "int64"}) == spaces.MultiDiscrete([2, 3])
    pairs = [["z", {"t": "mbinary", "shape": [3]}], ["a", {"t": "discrete", "n": 2}]]
    space = parse_space({"t": "dict", "k": pairs})
    assert isinstance(space, spaces.Dict)
    assert list(space.spaces) == ["z", "a"], "the order is the server's"


@pytest.mark.parametrize(
    "g",
    [
        None, 3, [], {}, {"t": "cube"}, {"t": "box"}, {"t": "box", "shape": 3, "dtype": "float32", "low": 0, "high": 1},
        {"t": "box", "shape": [2], "dtype": "float31", "low": 0, "high": 1}, {"t": "discrete", "n": 0},
        {"t": "discrete", "n": "x"}, {"t": "dict", "k": [["a"]]}, {"t": "dict", "k": {"a": 1}}, {"t": "tuple"},
        {"t": "box", "shape": [2], "dtype": "float32", "low": [0, 1, 2], "high": 1},
    ],
)  # fmt: skip
def test_wrong_spaces_are_refused(g: Any) -> None:
    with pytest.raises(ProtocolError, match="space"):
        parse_space(g)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "want a map"),
        ({}, "want a map of x"),
        ({"x": np.zeros((1, 2), np.float32), "y": 1}, "want a map of x"),
        ({"x": np.zeros((1, 2))}, "float64"),
        ({"x": np.zeros((2, 2), np.float32)}, r"\(2, 2\), want float32 \(1, 2\)"),
        ({"x": [[0.0, 0.0]]}, "a list, want an array"),
    ],
)
def test_observations_of_another_shape_or_type_are_refused(value: Any, words: str) -> None:
    batch = Batch(spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float32)}), 1)
    with pytest.raises(ProtocolError, match=words):
        batch.all(value)


def test_nested_observations_are_batched_as_gymnasium_does() -> None:
    box = spaces.Box(0, 1, (2,), np.float32)
    space = spaces.Dict({"t": spaces.Tuple([box, spaces.Discrete(3)]), "d": spaces.Dict({"x": box})})
    value = {"t": [np.ones((2, 2), np.float32), np.array([0, 2])], "d": {"x": np.zeros((2, 2), np.float32)}}
    whole = Batch(space, 2).all(value)
    assert isinstance(whole["t"], tuple)
    assert whole["t"][1].tolist() == [0, 2]
    one = Batch(space, 2).one(value, 1)
    assert one in space
    assert one["t"][1] == 2


def test_padded_graphs_lose_their_padding() -> None:
    space = spaces.Graph(spaces.Box(0, 9, (2,), np.float32), spaces.Box(0, 9, (1,), np.float32))
    value = {
        "nodes": np.arange(12, dtype=np.float32).reshape(2, 3, 2), "n_nodes": np.array([2, 3]),
        "edges": np.ones((2, 2, 1), np.float32), "edge_links": np.array([[[0, 1], [0, 0]], [[0, 1], [1, 2]]], np.int32),
        "n_edges": np.array([1, 2]),
    }  # fmt: skip
    first, second = graphs(space, value)
    assert first.nodes.tolist() == [[0, 1], [2, 3]]
    assert first.edge_links is not None
    assert first.edge_links.tolist() == [[0, 1]]
    assert second.edges is not None
    assert second.edges.shape == (2, 1)
    assert Batch(space, 2).all(value)[1].nodes.shape == (3, 2)
