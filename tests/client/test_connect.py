"""Where a client's calls go."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runmemory_core import AsyncClient, Client, InvalidRequest
from runmemory_core.client import _connect
from runmemory_core.client._connect import Target, target
from runmemory_core.model import HOSTED_URL

DATABASE = sqlite3.connect(":memory:")
DATABASE.close()
KEY = "rmk_live_never-show-this"


@pytest.fixture(autouse=True)
def told_anew() -> Iterator[None]:
    _connect._tell_once.cache_clear()
    yield
    _connect._tell_once.cache_clear()


def found(
    url: str | None = None,
    api_key: str | None = None,
    *,
    keep: int | None = None,
    expire_after: timedelta | None = None,
) -> Target:
    return target(url, api_key=api_key, timeout_seconds=30.0, keep=keep, expire_after=expire_after)


def test_without_anything_it_is_a_file_of_this_machine(tmp_path: Path) -> None:
    where = found()
    assert where.embedded
    assert where.url == f"sqlite:///{tmp_path}/data-home/runmemory/runmemory.db"
    with Client() as client:
        assert client.where == f"{tmp_path}/data-home/runmemory/runmemory.db"
        assert not client.remote


def test_the_path_is_told_once(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.INFO, "runmemory")
    found()
    found()
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert told == [f"runmemory: saving to {tmp_path}/data-home/runmemory/runmemory.db (this machine only)"]


def test_in_a_container_it_is_warned_that_the_file_may_vanish(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(_connect.os.path, "ismount", lambda path: str(path) == "/")
    found()
    assert "may vanish with it: mount a volume there, or set RUNMEMORY_URL" in caplog.text


def test_a_volume_in_a_container_is_not_warned_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(_connect.os.path, "ismount", lambda path: path == tmp_path)
    found()
    assert "may vanish" not in caplog.text


@pytest.mark.parametrize(
    ("arguments", "environment", "url", "api_key"),
    [
        ({"url": "sqlite:///a.db"}, {}, "sqlite:///a.db", None),
        ({"url": "https://h/"}, {}, "https://h", None),
        ({"api_key": KEY}, {}, HOSTED_URL, KEY),
        ({}, {"RUNMEMORY_API_KEY": KEY}, HOSTED_URL, KEY),
        ({}, {"RUNMEMORY_URL": "http://h:8787"}, "http://h:8787", None),
        ({"url": "https://a"}, {"RUNMEMORY_URL": "https://e", "RUNMEMORY_API_KEY": KEY}, "https://a", KEY),
        ({"api_key": KEY}, {"RUNMEMORY_URL": "https://e", "RUNMEMORY_API_KEY": "other"}, "https://e", KEY),
        ({"api_key": KEY}, {"RUNMEMORY_URL": ""}, HOSTED_URL, KEY),
    ],
)
def test_arguments_come_before_the_environment(
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, str],
    environment: dict[str, str],
    url: str,
    api_key: str | None,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    where = found(arguments.get("url"), arguments.get("api_key"))
    assert (where.url, where.api_key) == (url, api_key)


def test_an_empty_variable_counts_as_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNMEMORY_URL", "")
    monkeypatch.setenv("RUNMEMORY_API_KEY", "")
    assert found().embedded


@pytest.mark.parametrize(
    "url", ["localhost", "a.b", "ftp://h/a.db", "https://", "http:///path", "h:8787", "https:/h"]
)
def test_what_is_no_address_is_refused_with_what_is(url: str) -> None:
    with pytest.raises(
        InvalidRequest, match=r"use https://host, or a file as in .*, sqlite:////absolute\.db"
    ) as refusal:
        Client(url)
    assert list(refusal.value.pointers) == ["/url"]


@pytest.mark.parametrize("url", ["mcp+https://h", "mcp+https://h/", "mcp+https:///mcp", "mcp+h/mcp"])
def test_what_is_no_mcp_address_is_refused_with_what_is(url: str) -> None:
    with pytest.raises(InvalidRequest, match=r"mcp\+https://host/mcp"):
        Client(url)


@pytest.mark.parametrize("opened", [Client, AsyncClient])
@pytest.mark.parametrize("url", ["mcp+https://h/base/mcp", "mcp+https://h/base/mcp/"])
def test_an_mcp_address_leads_to_the_service_it_belongs_to(
    opened: type[Client | AsyncClient], url: str
) -> None:
    assert opened(url, api_key=KEY).where == "https://h/base"


def test_the_storage_interface_over_mcp_says_that_it_needs_http() -> None:
    store = Client("mcp+https://h/mcp", api_key=KEY).store
    with pytest.raises(InvalidRequest, match=r"client\.store\.fetch needs HTTP"):
        store.fetch("import")


def test_what_a_service_decides_cannot_be_set_here() -> None:
    with pytest.raises(InvalidRequest, match="they can be set for an embedded store only"):
        found("https://h", keep=3)
    with pytest.raises(InvalidRequest, match="they can be set for an embedded store only"):
        found("https://h", expire_after=timedelta(days=1))


def test_keep_and_expire_after_become_limits() -> None:
    limits = found("sqlite:///a.db", keep=3, expire_after=timedelta(days=2)).caller.limits
    assert (limits.keep, limits.kept_for_ms) == (3, 2 * 86_400_000)


@pytest.mark.parametrize("opened", [Client, AsyncClient])
def test_nothing_that_is_shown_holds_a_key_or_password(opened: type[Client | AsyncClient]) -> None:
    client = opened("https://user:pass-word@h/base", api_key=KEY)
    shown = f"{client} {client!r} {client.where} {client._target!r}"
    assert KEY not in shown
    assert "pass-word" not in shown
    assert "h/base" in client.where
    with pytest.raises(InvalidRequest) as refusal:
        Client("ftp://user:pass-word@h")
    assert "pass-word" not in refusal.value.detail


def test_redaction_can_be_turned_off_for_an_embedded_store_only(tmp_path: Path) -> None:
    with Client(f"sqlite:///{tmp_path}/runs.db", redacts=False) as client:
        assert client.save_checkpoint("import", "one", state={"password": "hunter2"}).removed == []
        checkpoint = client.resume("import").checkpoint
        assert checkpoint is not None
        assert checkpoint.state == {"password": "hunter2"}


@pytest.mark.parametrize("opened", [Client, AsyncClient])
def test_a_path_is_a_file(
    opened: type[Client | AsyncClient], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "runs.db"
    for place in (file, Path("runs.db"), str(file), "runs.db", "./runs.db", "~/runs.db", f"sqlite:///{file}"):
        client = opened(place)
        assert (client.where, client.remote) == (str(file), False)
        if isinstance(client, Client):
            client.close()
        else:
            asyncio.run(client.close())
    assert _connect.file_url("./named") == "sqlite:///named"


@pytest.mark.parametrize("url", ["sqlite:///:memory:", ":memory:", "sqlite://", "sqlite:///file::memory:"])
def test_a_store_in_memory_is_refused_in_words(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"would be gone with its process.*: name a file"):
        Client(url)
    assert not list(tmp_path.rglob("*memory:*"))


@pytest.mark.parametrize("opened", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("url", DATABASE, "url is of type Connection; a text or a path is needed"),
        ("url", 7, "url is of type int"),
        ("url", b"runs.db", "url is of type bytes"),
        ("api_key", b"rmk", "api_key is of type bytes; a text is needed"),
        ("keep", "3", "keep is of type str; a whole number is needed"),
        ("keep", True, "keep is of type bool"),
        (
            "expire_after",
            3,
            r"expire_after is of type int; a timedelta such as timedelta\(days=30\) is needed",
        ),
        ("timeout_seconds", "30", "timeout_seconds is of type str; a number of seconds is needed"),
        ("timeout_seconds", 0, "timeout_seconds is 0"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(
    opened: type[Client | AsyncClient], name: str, value: Any, words: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"url": tmp_path / "runs.db", name: value}
    with pytest.raises(InvalidRequest, match=words) as refusal:
        opened(**given)
    assert list(refusal.value.pointers) == [f"/{name}"]


@pytest.mark.parametrize("opened", [Client, AsyncClient])
def test_nothing_goes_to_a_service_without_redaction(opened: type[Client | AsyncClient]) -> None:
    with pytest.raises(InvalidRequest, match="redacts=False is for an embedded store only"):
        opened("https://host", redacts=False)


@pytest.mark.parametrize("url", ["sqlite:///{}/runs.db", "http://127.0.0.1:9"])
def test_a_closed_client_says_so(url: str, tmp_path: Path) -> None:
    url = url.format(tmp_path)
    client = Client(url)
    client.close()
    client.close()

    async def use() -> None:
        awaited = AsyncClient(url)
        await awaited.close()
        await awaited.save_checkpoint("import", "one")

    with pytest.raises(InvalidRequest, match="is closed: open another, or close it later"):
        client.save_checkpoint("import", "one")
    with pytest.raises(InvalidRequest, match="is closed: open another, or close it later"):
        client.store.claim("import", "adapter")
    with pytest.raises(InvalidRequest, match="is closed: open another, or close it later"):
        asyncio.run(use())
