"""What is a JSON-RPC message, and what the others hear: never what they sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.service.messages import MODERN
from tests.service.serving import Service


@pytest.mark.parametrize("revision", [None, "2025-06-18", "2025-11-25", MODERN])
@pytest.mark.parametrize("answer", [{"result": "SECRET"}, {"error": "SECRET"}, {"error": {"code": "SECRET"}}])
def test_an_answer_to_no_question_is_acknowledged_whatever_it_holds(
    service: Service, revision: str | None, answer: dict[str, Any]
) -> None:
    headers = {} if revision is None else {"mcp-protocol-version": revision}
    found = service.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1} | answer, headers=headers)
    assert (found.status, found.body) == (202, b"")
