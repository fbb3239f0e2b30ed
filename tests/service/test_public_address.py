"""At which address a service says it is: configured, told by a trusted proxy, or the one each request names."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runmemory_core import InvalidRequest
from runmemory_core.errors import WrongOrigin
from runmemory_core.service import catalogue, mcp_origins
from runmemory_core.service.addresses import reached_at
from runmemory_core.service.settings import Settings, from_environment
from tests.service.messages import call, post, shown
from tests.service.serving import CLI, Service, environment, running_service

PUBLIC = "https://runs.example.com/team"


def settings(**variables: str) -> Settings:
    environment = {f"RUNMEMORY_{name.upper()}": value for name, value in variables.items()}
    return from_environment(default_database=lambda: "sqlite:///x", environment=environment)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    database = f"sqlite:///{tmp_path_factory.mktemp('published')}/runs.db"
    with running_service(database, public_url=PUBLIC) as running:
        yield running


@pytest.mark.parametrize("file", catalogue.FILES, ids=lambda file: file.path)
def test_a_public_url_stands_in_every_file_of_the_catalogue(
    published: Service, file: catalogue.Published
) -> None:
    said = published.ask("GET", file.path, headers={"x-forwarded-host": "evil.example"}).body.decode()
    assert said == file.text(PUBLIC)
    assert PUBLIC in said


def test_a_public_url_stands_in_hints_and_its_name_may_be_called(published: Service) -> None:
    state = {"text": "x" * 20_000}
    call(published, "save_checkpoint", {"run_id": "r", "step": "s", "state": state})
    sent = {"host": "runs.example.com", "origin": "https://runs.example.com"}
    found = shown(call(published, "resume", {"run_id": "r", "peek": True}, headers=sent))
    assert f"GET {PUBLIC}/api/run/r/state?seq=1" in found["hints"][0]
    assert post(published, "tools/list", headers={"host": "other.example.com"}).status == 403
    assert post(published, "tools/list", headers={"origin": "https://other.example.com"}).status == 403


def scope(client: str, scheme: str = "http") -> dict[str, Any]:
    return {"client": (client, 1), "scheme": scheme, "server": ("10.0.0.1", 8787)}


@pytest.mark.parametrize(
    ("client", "forwarded", "expected"),
    [
        ("10.0.0.7", {b"x-forwarded-proto": b"https"}, "https://inner:80"),
        ("10.0.0.7", {b"x-forwarded-proto": b"https", b"x-forwarded-host": b"runs.example"}, "https://runs.example"),
        ("10.0.0.7", {b"x-forwarded-host": b"made.up, runs.example"}, "http://runs.example"),
        ("10.0.0.7", {b"x-forwarded-proto": b"javascript"}, "http://inner:80"),
        ("10.0.0.7", {b"x-forwarded-host": b"a b"}, "http://10.0.0.1:8787"),
        ("10.0.0.8", {b"x-forwarded-proto": b"https", b"x-forwarded-host": b"evil.example"}, "http://inner:80"),
    ],
)  # fmt: skip
def test_only_a_trusted_proxy_is_believed(client: str, forwarded: dict[bytes, bytes], expected: str) -> None:
    ours = settings(trusted_proxies="10.0.0.7")
    assert reached_at(scope(client), {b"host": b"inner:80"} | forwarded, ours) == expected


@pytest.mark.parametrize("host", [b"", b"evil: x #y", b"a@127.0.0.1", b"a/b"])
def test_a_host_that_is_no_name_is_put_nowhere(host: bytes) -> None:
    assert reached_at(scope("10.0.0.8"), {b"host": host}, settings()) == "http://10.0.0.1:8787"


@pytest.mark.parametrize(
    "text", ["runs.example.com", "ftp://a", "https://a?b", "https://a b", "https://u:p@a"]
)
def test_a_public_url_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is no address of a service"):
        settings(public_url=text)


def test_a_public_url_ends_without_a_slash_and_adds_its_name_to_those_allowed() -> None:
    ours = settings(
        public_url="https://Runs.example.com/", allowed_hosts="inner", allowed_origins="https://a"
    )
    assert ours.public_url == "https://Runs.example.com"
    for host in (b"runs.example.com", b"inner"):
        mcp_origins.check_host(host, ours)
    mcp_origins.check_origin(b"https://runs.example.com", ours)
    with pytest.raises(WrongOrigin):
        mcp_origins.check_host(b"other", ours)


def test_a_new_key_is_shown_with_the_public_url(tmp_path: Path) -> None:
    command = [*CLI, "keys", "issue", "--database", f"{tmp_path}/runs.db"]
    own = environment() | {"RUNMEMORY_PUBLIC_URL": PUBLIC}
    done = subprocess.run(command, env=own, text=True, capture_output=True, check=True)
    assert f"export RUNMEMORY_URL={PUBLIC}\n" in done.stdout
