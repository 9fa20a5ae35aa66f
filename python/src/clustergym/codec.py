"""Bytes to values and back: one msgpack map per frame, arrays as extension type 78.

An array is its dtype's code, its number of dimensions, two reserved zero bytes, the dimensions as little-endian u32, zeros
up to a multiple of eight, and its elements in C order, little-endian. No pickle is read or written.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from .errors import ProtocolError

__all__ = ["ARRAY_EXT", "Array", "array_prefix", "decode", "encode", "pack_array", "unpack_array"]

#: The msgpack extension type of arrays.
ARRAY_EXT = 78

Array = npt.NDArray[Any]

_MAX_NDIM = 8
_DTYPES: dict[int, np.dtype[Any]] = {
    code: np.dtype(name)
    for code, name in enumerate(("bool", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", "<f2"), 1)
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}

# A frame may claim lists and maps of any length; these limits bound what is allocated for them before their elements
# have been seen. Nothing in the protocol comes near.
_MAX_LIST = 1 << 20
_MAX_MAP = 1 << 16

# The header is the same for all arrays of one type and shape, so it is parsed once.
_layouts: dict[bytes, tuple[tuple[int, ...], np.dtype[Any], int, int]] = {}
_prefixes: dict[tuple[np.dtype[Any], tuple[int, ...]], bytes] = {}
_MAX_CACHED = 4096
_ndarray: Callable[..., Array] = np.ndarray
_OFFSETS = tuple((4 + 4 * ndim + 7) & ~7 for ndim in range(_MAX_NDIM + 1))


def _layout(head: bytes, ndim: int) -> tuple[tuple[int, ...], np.dtype[Any], int, int]:
    """Parses an array's header: shape, dtype, where the elements begin, and the length of the whole."""
    dtype = _DTYPES.get(head[0])
    if dtype is None:
        raise ProtocolError(f"array: dtype code is {head[0]}, want 1 to {len(_DTYPES)}")
    if head[2:4] != b"\0\0":
        raise ProtocolError(f"array: flags are {head[2:4].hex()}, want 0000")
    shape = struct.unpack_from(f"<{ndim}I", head, 4)
    if any(head[4 + 4 * ndim :]):
        raise ProtocolError("array: the padding before the elements is not zero")
    offset = _OFFSETS[ndim]
    found = shape, dtype, offset, offset + math.prod(shape) * dtype.itemsize
    if len(_layouts) >= _MAX_CACHED:
        _layouts.clear()
    _layouts[head] = found
    return found


def unpack_array(data: bytes) -> Array:
    """Reads the payload of an array. The result is a read-only view of data, which it keeps alive.

    Raises:
        ProtocolError: the header is wrong, or the length is not exactly that of type and shape.
    """
    if len(data) < 8:
        raise ProtocolError(f"array: {len(data)} bytes, want at least 8")
    ndim = data[1]
    if ndim > _MAX_NDIM:
        raise ProtocolError(f"array: {ndim} dimensions, want at most {_MAX_NDIM}")
    head = data[: _OFFSETS[ndim]]
    if len(head) != _OFFSETS[ndim]:
        raise ProtocolError(f"array: cut short in its header ({len(data)} bytes)")
    shape, dtype, offset, size = _layouts.get(head) or _layout(head, ndim)
    if len(data) != size:
        raise ProtocolError(f"array of {dtype} {shape}: {len(data)} bytes, want {size}")
    found: Array = np.ndarray(shape, dtype, data, offset)
    return found


def _ext_hook(code: int, data: bytes) -> Any:
    if code != ARRAY_EXT:
        raise ProtocolError(f"extension type {code}, want {ARRAY_EXT}")
    try:
        # Almost all arrays have a type and shape that came before.
        shape, dtype, offset, size = _layouts[data[: _OFFSETS[data[1]]]]
        if len(data) == size:
            return _ndarray(shape, dtype, data, offset)
    except (KeyError, IndexError):
        pass
    return unpack_array(data)


_unpack = functools.partial(
    msgpack.unpackb,
    ext_hook=_ext_hook,
    raw=False,
    strict_map_key=True,
    max_array_len=_MAX_LIST,
    max_map_len=_MAX_MAP,
)


def decode(frame: bytes | memoryview) -> dict[str, Any]:
    """Reads one frame. Arrays are read-only and own their bytes: nothing refers to frame afterwards.

    Raises:
        ProtocolError: the frame is not one msgpack map with string keys, or an array in it is wrong.
    """
    try:
        value = _unpack(frame)
    except ProtocolError:
        raise
    except Exception as e:  # msgpack raises half a dozen unrelated classes
        raise ProtocolError(f"unreadable frame of {len(frame)} bytes: {e or type(e).__name__}") from e
    if type(value) is not dict:
        raise ProtocolError(f"frame holds a {type(value).__name__}, want a map")
    return value


def array_prefix(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The bytes before the elements of such an array in a frame: the extension's header and the array's.

    Raises:
        TypeError: the protocol has no such element type.
        ValueError: more than eight dimensions, or one beyond 32 bits.
    """
    found = _prefixes.get((dtype, shape))
    if found is not None:
        return found
    code = _CODES.get(dtype)
    if code is None:
        raise TypeError(f"array of {dtype}: want one of {', '.join(d.name for d in _DTYPES.values())}")
    if len(shape) > _MAX_NDIM or any(n >= 1 << 32 for n in shape):
        raise ValueError(f"array of shape {shape}: want at most {_MAX_NDIM} dimensions, each below 2^32")
    size = _OFFSETS[len(shape)] + math.prod(shape) * dtype.itemsize
    if size in (8, 16):
        ext = bytes((0xD7 if size == 8 else 0xD8, ARRAY_EXT))
    elif size < 1 << 8:
        ext = struct.pack(">BBB", 0xC7, size, ARRAY_EXT)
    elif size < 1 << 16:
        ext = struct.pack(">BHB", 0xC8, size, ARRAY_EXT)
    elif size < 1 << 32:
        ext = struct.pack(">BIB", 0xC9, size, ARRAY_EXT)
    else:
        raise ValueError(f"array of {size} bytes: want less than 2^32")
    head = struct.pack(f"<BBH{len(shape)}I", code, len(shape), 0, *shape)
    found = ext + head.ljust(_OFFSETS[len(shape)], b"\0")
    if len(_prefixes) >= _MAX_CACHED:
        _prefixes.clear()
    _prefixes[dtype, shape] = found
    return found


def pack_array(a: Array) -> bytes:
    """One array as in a frame."""
    if a.dtype not in _CODES:
        a = a.astype(a.dtype.newbyteorder("<"), copy=False)
    return array_prefix(a.dtype, a.shape) + a.tobytes()


def _plain(value: Any) -> Any:
    """Converts values that msgpack does not know: NumPy's scalars, and arrays inside lists and maps."""
    if isinstance(value, np.ndarray):
        whole = pack_array(value)
        # Only the payload goes in: msgpack writes the extension's own header.
        return msgpack.ExtType(ARRAY_EXT, whole[len(whole) - _payload_size(value) :])
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(
        f"a {type(value).__name__} cannot be sent: want None, bool, int, float, str, bytes, array, list or map"
    )


def _payload_size(a: Array) -> int:
    return _OFFSETS[a.ndim] + a.nbytes


_pack: Callable[..., bytes] = msgpack.packb


def encode(value: Any) -> bytes:
    """One value as in a frame. Maps keep their order.

    Raises:
        TypeError: it contains a type that the protocol does not have.
    """
    if isinstance(value, np.ndarray):
        return pack_array(value)
    try:
        return _pack(value, default=_plain, use_bin_type=True, strict_types=False)
    except (ValueError, OverflowError) as e:
        raise TypeError(f"cannot be sent: {e}") from e
