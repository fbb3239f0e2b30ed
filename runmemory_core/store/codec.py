"""How texts lie in the database: UTF-8, or a zstd frame where that is smaller.

A zstd frame begins with the bytes 28 B5 2F FD, which no JSON text begins with, so no flag is kept. Decoding
is bounded by the size that the frame declares, which writers here always declare.

Most texts are small and alike, so each frame may refer to `_LIKELY` as if it had stood before the text. That belongs
to the format: a single changed character makes every database unreadable.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdDict
else:
    from backports.zstd import CompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdDict

COMPRESSED_FROM_BYTES = 64
_MAGIC = b"\x28\xb5\x2f\xfd"
_LIKELY = ZstdDict(
    b'{"lc":1,"type":"constructor","id":[{"$lg":"ext","code":5,"type":"langchain_core.messages.tool:ToolMessage",'
    b'"tool_calls":[{"name":"","args":{},"id":"call_","type":"tool_call"}],"invalid_tool_calls":[],"tool_call_id":"",'
    b'"usage_metadata":{"input_tokens":,"output_tokens":,"total_tokens":},"finish_reason":"stop","model_name":"'
    b'{"$lg":"ext","code":5,"type":"langchain_core.messages.human:HumanMessage","value":{"content":"",'
    b'"additional_kwargs":{},"response_metadata":{},"type":"human","name":null,"id":"'
    b'{"$lg":"ext","code":5,"type":"langchain_core.messages.ai:AIMessage","value":{"content":"",'
    b'"additional_kwargs":{},"response_metadata":{},"type":"ai","name":null,"id":"","tool_calls":[],'
    b'"invalid_tool_calls":[],"usage_metadata":null}},"method":"model_validate_json"}'
    b'[{"task_id":"","task_path":"~__pregel_push, 0000000001, 0000000000","writes":[[0,"messages",{"l":[{"p":"'
    b'},{"task_id":"","task_path":"~__pregel_pull, __start__","writes":[[0,"",{"=":]],[1,"branch:to:",{"=":null}]]}]'
    b'{"state":[["messages",{"l":[{"g":""},{"p":""}]}],["__pregel_tasks",{"=":[]}],["branch:to:",{"=":null}]],'
    b'"extra":{"=":{"versions":[["__start__","00000000000000000000000000000002.0.1"],'
    b'["__pregel_tasks","00000000000000000000000000000010.0.2"],["branch:to:","00000000000000000000000000000020.0.3"]],'
    b'"seen":[["__input__",[]],["__start__",[["__start__","00000000000000000000000000000001.0.4"]]],'
    b'["",[["branch:to:","00000000000000000000000000000100.0.5"]]]],"v":4,"ts":"2026-12-01T00:00:00.000000+00:00",'
    b'"updated_channels":["__pregel_tasks","branch:to:"]}}}',
    is_raw=True,
)
# Making a compressor costs more than using it on a few KB; each call ends a frame of its own and is atomic.
_compressor = ZstdCompressor(options={CompressionParameter.compression_level: 1}, zstd_dict=_LIKELY)


def pack(text: str) -> bytes:
    """The bytes to keep for ``text``."""
    data = text.encode()
    if len(data) < COMPRESSED_FROM_BYTES:
        return data
    packed = _compressor.compress(data, mode=ZstdCompressor.FLUSH_FRAME)
    return packed if len(packed) < len(data) else data


def unpack(body: bytes) -> str:
    """The text that `pack` was given."""
    if body[:4] != _MAGIC:
        return body.decode()
    decompressor = ZstdDecompressor(zstd_dict=_LIKELY)
    data = decompressor.decompress(body)
    if not decompressor.eof:
        raise ValueError("a compressed text ends in its middle")
    return data.decode()
