"""Texts come back as they were, and take less room when they can."""

from __future__ import annotations

import os
import sys
from base64 import b85encode
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

if sys.version_info >= (3, 14):
    from compression.zstd import compress
else:
    from backports.zstd import compress

from runmemory_core.store.codec import COMPRESSED_FROM_BYTES, pack, unpack


@given(st.text(max_size=300).map(lambda text: text * 5) | st.text())
def test_a_text_comes_back_as_it_was(text: str) -> None:
    assert unpack(pack(text)) == text


@pytest.mark.parametrize("length", [COMPRESSED_FROM_BYTES - 1, COMPRESSED_FROM_BYTES])
def test_a_text_is_compressed_from_its_bound_on(length: int) -> None:
    assert (len(pack("x" * length)) < length) is (length >= COMPRESSED_FROM_BYTES)
    assert unpack(pack("x" * length)) == "x" * length


def test_a_text_that_would_grow_is_kept_as_it_is() -> None:
    text = b85encode(os.urandom(400)).decode()
    assert len(pack(text)) <= len(text)
    assert unpack(pack(text)) == text


def test_many_threads_pack_at_once() -> None:
    texts = [f"{number} " * 500 for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        assert [unpack(body) for body in threads.map(pack, texts)] == texts


def test_what_an_earlier_release_wrote_is_read() -> None:
    """The dictionary is part of the format; frames without one, as other tools write them, are read too."""
    frame = bytes.fromhex("28b52ffd206edd00006070223a224137225d5d7d7d7d04000308801ba205b84f55882208")
    assert unpack(frame) == (
        '{"state":[["messages",{"l":[{"p":"AAAAAAAAAAAAAAAAAAAAAA"}]}]],'
        '"extra":{"=":{"versions":[["__start__","7"]]}}}'
    )
    assert unpack(compress(b"plain " * 50)) == "plain " * 50


def test_a_frame_that_was_cut_is_no_text() -> None:
    with pytest.raises(ValueError, match="ends in its middle"):
        unpack(pack("text " * 100)[:-3])
