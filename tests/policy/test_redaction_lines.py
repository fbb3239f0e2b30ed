"""Secrets in lines, in arguments of commands and in other places that no name stands right beside."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from runmemory_core.policy.redaction import names_secret, redact

GONE = "[removed]"


def after(value: Any, **options: Any) -> Any:
    return redact(copy.deepcopy(value), **options).value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("X-Api-Key: abc", f"X-Api-Key: {GONE}"),
        ("Cookie: sid=abc; theme=dark", f"Cookie: {GONE}"),
        (
            "HTTP/1.1 200 OK\r\nDate: Mon\r\nSet-Cookie: sid=abc; Path=/\r\nContent-Type: text/html\r\n\r\n",
            f"HTTP/1.1 200 OK\r\nDate: Mon\r\nSet-Cookie: {GONE}\r\nContent-Type: text/html\r\n\r\n",
        ),
        (
            "GET /a HTTP/1.1\nHost: x.test\nAuthorization: Token abc",
            f"GET /a HTTP/1.1\nHost: x.test\nAuthorization: Token {GONE}",
        ),
        ("password: hunter2", f"password: {GONE}"),
        ("db:\n  host: x\n  password: hunter2\n", f"db:\n  host: x\n  password: {GONE}\n"),
        ("- api_key: abc123 \n- name: x", f"- api_key: {GONE} \n- name: x"),
        ('# keys\n[openai]\napi_key = "abcd"\nport = 1\n', f"# keys\n[openai]\napi_key = {GONE}\nport = 1\n"),
        ("curl -u ada:hunter2 https://x.test", f"curl -u ada:{GONE} https://x.test"),
        ("curl --user 'ada:hunter2' https://x.test", f"curl --user 'ada:{GONE}' https://x.test"),
        ("deploy --api-key abc123 --dry-run", f"deploy --api-key {GONE} --dry-run"),
        ("deploy --password 'a b' now", f"deploy --password {GONE} now"),
        ('{"a": 1, "password": "cut of', f'{{"a": 1, "password": "{GONE}'),
        ("PASSWORD=abc def", f"PASSWORD={GONE}"),
        ("A=1\nDB_PASSWORD=abc def\nB=2", f"A=1\nDB_PASSWORD={GONE}\nB=2"),
    ],
    ids=range(15),
)
def test_a_secret_in_a_line_goes_except_by_names(text: str, expected: str) -> None:
    assert after({"x": text}) == {"x": expected}
    assert redact({"x": text}, mode="names") == ({"x": text}, (), ("/x",))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["run", "--api-key", "abc", "-v"], ["run", "--api-key", GONE, "-v"]),
        ({"variable": "API_KEY", "value": "x"}, {"variable": "API_KEY", "value": GONE}),
        ({"label": "Password", "value": "x"}, {"label": "Password", "value": GONE}),
        (
            {"selector": "input[name=password]", "text": "hunter2"},
            {"selector": "input[name=password]", "text": GONE},
        ),
        ({"sessionid": "x"}, {"sessionid": GONE}),
        ({"card_number": 4242424242424242}, {"card_number": GONE}),
        ({"pin_number": 1234}, {"pin_number": GONE}),
        ({"secret_salt": "x", "secret_for_ci": "y"}, {"secret_salt": GONE, "secret_for_ci": GONE}),
    ],
    ids=range(8),
)
def test_a_secret_that_another_member_names_goes(value: Any, expected: Any) -> None:
    for mode in ("full", "names"):
        assert after(value, mode=mode) == expected


@pytest.mark.parametrize("credential", ["dp.pt." + "aB1" * 14, "1//0g" + "aB1_" * 12, "EAAC" + "aB1" * 30])
def test_credentials_of_more_vendors_are_known_by_their_format(credential: str) -> None:
    assert after([f"use {credential} here"]) == [f"use {GONE} here"]


@pytest.mark.parametrize(
    "value",
    [
        {"jira_key": "PROJ-1"},
        {
            "selectors": {"password": "#password", "otp": "input[name='otp']"},
            "password": "//input[@id='password']",
        },
        {"xpath_password": "//input", "password_selector": "#pwd"},
        {"secret_santa": {"ann": "bob"}, "secret_word": "banana", "secret_ingredient": "salt"},
        {"card_number": 7},
        {"selector": "#search", "text": "socks"},
        {"key": "password", "text": "Enter your password"},
        ["--api-key", "--dry-run"],
        ["--api-key", "$API_KEY"],
        {"a": "Password: required", "b": "Token: expired", "c": "token: str\npassword: str = None\n"},
        {
            "a": "interface A {\n  password: string;\n}",
            "b": "password: string;",
            "c": "password: Optional[str],",
        },
        {"a": "User: my token is lost\nAgent: which token: the API one?", "b": "password: $PASSWORD"},
        {"a": "pass --token to the command", "b": "docker run -u 1000:1000 x", "c": "x --password $PW"},
        {
            "a": '"Authorization": f"Bearer {key}",',
            "b": "X-Api-Key: 'x',",
            "c": "  api_key: settings.api_key,",
        },
        {
            "a": "cookie: str",
            "b": "authorization: Optional[str]",
            "c": "password: bytes = b''",
            "d": "token: meta_value",
        },
        {"a": 'auth_str = f", auth={auth!r}"', "b": 'code_verifier = "".join(pick() for _ in range(128))'},
        {"a": "api_key = settings.api_key\nport = 1", "b": "token: ${{ secrets.TOKEN }}"},
        {"a": "secret_name: db\nkey: value\ntokens: 5", "b": "EAAC" + "aB1/" * 30},
    ],
    ids=range(18),
)
def test_what_only_resembles_it_comes_back_as_it_was(value: Any) -> None:
    for mode in ("full", "names"):
        assert redact(copy.deepcopy(value), mode=mode) == (value, (), ())


def test_secret_before_a_noun_of_another_kind_only_says_how_it_is() -> None:
    assert not any(map(names_secret, ("secret_santa", "secretLevel", "secret-sauce")))
    assert all(
        map(
            names_secret,
            ("secret", "secret_value", "secret_key", "client_secret", "secret_openai", "my_secret_x"),
        )
    )
