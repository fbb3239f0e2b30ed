"""Which names of this machine, and of others, `/mcp` answers to."""

from __future__ import annotations

import pytest

from runmemory_core.errors import WrongOrigin
from runmemory_core.service.mcp_origins import check_host, check_origin
from runmemory_core.service.settings import Settings, from_environment


def settings(**variables: str) -> Settings:
    environment = {f"RUNMEMORY_{name.upper()}": value for name, value in variables.items()}
    return from_environment(default_database=lambda: "sqlite:///x", environment=environment)


@pytest.mark.parametrize("listening", ["127.0.0.1", "127.0.0.2", "::1", "localhost", "LOCALHOST"])
def test_a_service_of_this_machine_answers_to_this_machines_names_only(listening: str) -> None:
    ours = settings(host=listening)
    for host in (b"127.0.0.1:8787", b"127.0.0.2", b"LocalHost:1", b"[::1]:8787", b"[::1]"):
        check_host(host, ours)
        check_origin(b"http://" + host, ours)
    for host in (
        b"runs.example",
        b"10.0.0.1",
        b"127.0.0.1.example",
        b"a@127.0.0.1",
        b"::1",
        b"localhost:x",
        b"",
    ):
        with pytest.raises(WrongOrigin):
            check_host(host, ours)
    for origin in (b"http://runs.example", b"http://a@127.0.0.1", b"null", b"127.0.0.1"):
        with pytest.raises(WrongOrigin):
            check_origin(origin, ours)


def test_an_ipv6_address_that_is_allowed_may_come_with_any_port() -> None:
    ours = settings(allowed_hosts="[::1], ::2, [2001:db8::1]:80")
    for host in (b"[::1]:8787", b"[::1]", b"[::2]:1", b"[2001:DB8::1]:80"):
        check_host(host, ours)
    for host in (b"[2001:db8::1]:81", b"[2001:db8::1]", b"[::3]:80"):
        with pytest.raises(WrongOrigin):
            check_host(host, ours)
