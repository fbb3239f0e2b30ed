"""How an API key looks: ``rmk_live_``, 32 random characters, 6 of checksum.

The checksum lets a service refuse a mistyped key, and a scanner of leaks recognise a real one, without any
database. A key is shown once, when it is made; what is kept of it is `digest`.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib

PREFIX = "rmk_live_"
_RANDOM_CHARACTERS = 32
_CHECKSUM_CHARACTERS = 6
_ID_CHARACTERS = 10
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_SHAPE = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_RANDOM_CHARACTERS + _CHECKSUM_CHARACTERS}}}")


def new_key() -> str:
    """A key nobody has: 190 random bits."""
    unchecked = PREFIX + "".join(secrets.choice(_BASE62) for _ in range(_RANDOM_CHARACTERS))
    return unchecked + _checksum(unchecked)


def is_well_formed(key: str) -> bool:
    """Whether a key has the shape and the checksum of one; it may still be unknown."""
    return _SHAPE.fullmatch(key) is not None and key.endswith(_checksum(key[:-_CHECKSUM_CHARACTERS]))


def digest(key: str) -> bytes:
    """What is kept of a key. It is random throughout, so a fast hash protects it as well as a slow one."""
    return hashlib.sha256(key.encode()).digest()


def id_of(key: str) -> str:
    """The name of a key in lists, from its digest: it tells nothing about the key."""
    return digest(key).hex()[:_ID_CHARACTERS]


def _checksum(text: str) -> str:
    """CRC-32 in base62, most significant digit first."""
    rest = zlib.crc32(text.encode())
    digits = ""
    for _ in range(_CHECKSUM_CHARACTERS):
        rest, digit = divmod(rest, len(_BASE62))
        digits = _BASE62[digit] + digits
    return digits
