"""Texts come back as they were, and take less room when they can."""

from __future__ import annotations

import os
from base64 import b85encode
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
