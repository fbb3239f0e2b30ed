"""How texts lie in the database: UTF-8, or a zstd frame where that is smaller.

A zstd frame begins with the bytes 28 B5 2F FD, which no JSON text begins with, so no flag is kept. Decoding
is bounded by the size that the frame declares, which writers here always declare.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, decompress
else:
    from backports.zstd import ZstdCompressor, decompress

COMPRESSED_FROM_BYTES = 400
_MAGIC = b"\x28\xb5\x2f\xfd"
# Making a compressor costs more than using it on a few KB; each call ends a frame of its own and is atomic.
_compressor = ZstdCompressor(level=1)


def pack(text: str) -> bytes:
    """The bytes to keep for ``text``."""
    data = text.encode()
    if len(data) < COMPRESSED_FROM_BYTES:
        return data
    packed = _compressor.compress(data, mode=ZstdCompressor.FLUSH_FRAME)
    return packed if len(packed) < len(data) else data


def unpack(body: bytes) -> str:
    """The text that `pack` was given."""
    return (decompress(body) if body[:4] == _MAGIC else body).decode()
