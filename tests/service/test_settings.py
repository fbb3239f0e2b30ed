"""Where the settings come from, and that they show no credential."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from runmemory_core import InvalidRequest
from runmemory_core.policy.secret_formats import masked_url
from runmemory_core.service.settings import Settings, from_environment, variables


def settings(environment: Mapping[str, str], **given: Any) -> Settings:
    return from_environment(default_database=lambda: "sqlite:///own.db", environment=environment, **given)


def test_the_defaults_are_visible() -> None:
    assert settings({}) == Settings(database="sqlite:///own.db", host="127.0.0.1", port=8787)


def test_arguments_come_before_the_environment_and_that_before_the_defaults() -> None:
    environment = {"RUNMEMORY_DATABASE": "sqlite:///a.db", "RUNMEMORY_HOST": "::", "RUNMEMORY_PORT": "0"}
    assert settings(environment) == Settings(database="sqlite:///a.db", host="::", port=0)
    given = settings(environment, database="sqlite:///b.db", host="localhost", port=80)
    assert given == Settings(database="sqlite:///b.db", host="localhost", port=80)


def test_an_empty_variable_counts_as_absent() -> None:
    empty = {"RUNMEMORY_DATABASE": "", "RUNMEMORY_HOST": "", "RUNMEMORY_PORT": ""}
    assert settings(empty) == settings({})


@pytest.mark.parametrize("port", ["http", "-1", "65536", "1.5", "१२"])
def test_what_is_no_port_is_refused(port: str) -> None:
    with pytest.raises(InvalidRequest, match="is no port: a number from 0 to 65,535"):
        settings({"RUNMEMORY_PORT": port})


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings({}).port = 1  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////data/runs.db", "sqlite:////data/runs.db"),
        ("postgresql://me:secret@host/runs", "postgresql://****@host/runs"),
        ("postgresql://me:se@cret@host/runs", "postgresql://****@host/runs"),
        ("postgresql://host/runs?password=secret&a=b", "postgresql://host/runs?password=****&a=b"),
    ],
)
def test_credentials_in_a_database_url_are_masked(url: str, shown: str) -> None:
    assert masked_url(url) == shown
    assert "cret" not in repr(Settings(database=url))


def test_variables_are_named_without_their_values() -> None:
    assert variables({"RUNMEMORY_URL": "x", "RUNMEMORY_API_KEY": "secret", "HOME": "/"}) == [
        "RUNMEMORY_API_KEY",
        "RUNMEMORY_URL",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RUNMEMORY_ALLOWED_HOSTS", "https://runs.example.com"),
        ("RUNMEMORY_ALLOWED_HOSTS", "runs.example.com/"),
        ("RUNMEMORY_ALLOWED_ORIGINS", "https://a.example, foo"),
        ("RUNMEMORY_ALLOWED_ORIGINS", "https://a.example/path"),
    ],
)
def test_a_list_that_could_match_nothing_is_refused_by_its_name(name: str, value: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{name} lists what is none: .* one looks like "):
        from_environment(default_database=str, environment={name: value})


def test_lists_take_hosts_and_origins_of_every_form() -> None:
    settings = from_environment(
        default_database=str,
        environment={
            "RUNMEMORY_ALLOWED_HOSTS": "Runs.example.com, 10.0.0.1:8787,[::1],*",
            "RUNMEMORY_ALLOWED_ORIGINS": "https://runs.example.com:8443, null, vscode-webview://abc,*",
        },
    )
    assert settings.allowed_hosts == ("runs.example.com", "10.0.0.1:8787", "[::1]", "*")
    assert settings.allowed_origins[:3] == ("https://runs.example.com:8443", "null", "vscode-webview://abc")
