"""What becomes of a value: kept, replaced, or replaced in part; by its name, its shape and its format."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from runmemory_core.policy import redaction
from runmemory_core.policy.pointers import MAX_POINTER_CHARACTERS
from runmemory_core.policy.redaction import contains_credential, redact

GONE = "[removed]"
RANDOM = "Aa1Bb2Cc3Dd4Ee5Ff6Gg7Hh8Ii9Jj0Kk"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
PEM_LINES = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"


def after(value: Any, **options: Any) -> Any:
    return redact(copy.deepcopy(value), **options).value


# --- by name --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [None, True, False, "", [], {}])
def test_empty_values_are_kept_under_any_name(kept: Any) -> None:
    assert after({"password": kept, "api_key": kept}) == {"password": kept, "api_key": kept}


def test_numbers_go_only_under_codes_and_passwords() -> None:
    value = {
        "pin": 1234,
        "otp": 123456,
        "cvv": 12.0,
        "password": 7,
        "token": 5,
        "key": 1,
        "auth": 2,
        "secret": 3,
    }
    assert after(value) == value | dict.fromkeys(("pin", "otp", "cvv", "password"), GONE)


def test_a_container_under_an_always_secret_name_goes_whole() -> None:
    assert after({"credentials": {"user": "a", "id": 1}, "cookies": ["a=1"]}) == {
        "credentials": GONE,
        "cookies": GONE,
    }


def test_a_container_under_another_secret_name_loses_the_secret_members_only() -> None:
    value = {"api_key": {"id": "k1", "name": "ci", "created_at": "now", "value": "v", "uses": 3}}
    assert after(value) == {"api_key": value["api_key"] | {"value": GONE}}
    assert after({"api_keys": ["a", ["b"], 3]}) == {"api_keys": [GONE, [GONE], 3]}
    assert after({"access_token": {"prod": {"eu": "a"}}}) == {"access_token": {"prod": {"eu": GONE}}}
    assert after({"token": {"access": "a", "symbol": "ETH"}}) == {"token": {"access": GONE, "symbol": "ETH"}}
    assert after({"auth": {"user": "ada", "password": "p"}}) == {"auth": {"user": "ada", "password": GONE}}


def test_a_word_that_says_how_is_kept_under_auth() -> None:
    assert after({"auth": "none", "password": "none"}) == {"auth": "none", "password": GONE}


def test_the_name_a_part_stands_under_counts() -> None:
    assert redact("hunter2", name="password", pointer="/state/x") == (GONE, ("/state/x",), ())
    assert redact("hunter2", name="notes").value == "hunter2"


# --- shapes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([["Authorization", "x"], ["Accept", "y"]], [["Authorization", GONE], ["Accept", "y"]]),
        ([["pin", 1234], ["token", 5]], [["pin", GONE], ["token", 5]]),
        ({"name": "Authorization", "value": "x"}, {"name": "Authorization", "value": GONE}),
        ({"key": "api_key", "value": "x"}, {"key": "api_key", "value": GONE}),
        ({"header": "Cookie", "value": "x"}, {"header": "Cookie", "value": GONE}),
        ({"Name": "DB_PASSWORD", "Value": "x"}, {"Name": "DB_PASSWORD", "Value": GONE}),
        ({"selector": "#password-input", "value": "x"}, {"selector": "#password-input", "value": GONE}),
        ({"selector": "input[name='otp']", "value": 12}, {"selector": "input[name='otp']", "value": GONE}),
        ({"name": "password", "value": {"a": 1}}, {"name": "password", "value": GONE}),
        ("https://x.test/a?q=1&token=abc#t", f"https://x.test/a?q=1&token={GONE}#t"),
        ("grant_type=x&client_secret=abc", f"grant_type=x&client_secret={GONE}"),
        ("user=a&password%5B%5D=abc", f"user=a&password%5B%5D={GONE}"),
        ("Server=a;User Id=b;Password=c d;", f"Server=a;User Id=b;Password={GONE};"),
        ("jdbc:sqlserver://h:1;user=a;password=b", f"jdbc:sqlserver://h:1;user=a;password={GONE}"),
        ("host=db user=a password=b", f"host=db user=a password={GONE}"),
        ("--password=hunter2", f"--password={GONE}"),
        ("Server=a;Password=my.pass;", f"Server=a;Password={GONE};"),
    ],
)
def test_a_secret_in_a_known_shape_goes(value: Any, expected: Any) -> None:
    assert after({"x": value}) == {"x": expected}
    assert after({"x": value}, mode="names") == {"x": expected}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("password=hunter2", f"password={GONE}"),
        ("PASSWORD=Passw0rd", f"PASSWORD={GONE}"),
        ('api_key="abc",', f"api_key={GONE},"),
        ('let apiKey="abc";', f"let apiKey={GONE};"),
        ("level=info token=abc", f"level=info token={GONE}"),
        ("see https://x.test/?api_key=abc now", f"see https://x.test/?api_key={GONE} now"),
        ("mysql --user=a --password=hunter2 shop", f"mysql --user=a --password={GONE} shop"),
        ({f"sk-{RANDOM}": 1, "a": 2}, {GONE: 1, "a": 2}),
        ({f"user:ghp_{RANDOM}": 1, f"user:gho_{RANDOM}": 2}, {f"user:{GONE}": 1, f"user:{GONE} 2": 2}),
    ],
)
def test_a_secret_in_prose_or_as_a_key_goes_except_by_names(value: Any, expected: Any) -> None:
    assert after({"x": value}) == {"x": expected}
    assert after({"x": value}, mode="names") == {"x": value}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"password":"x"}', '{"password":"[removed]"}'),
        (
            ' {"a" : 1.0,\n "api_key":"x", "b":"\\u00e9"}\n',
            ' {"a" : 1.0,\n "api_key":"[removed]", "b":"\\u00e9"}\n',
        ),
        ('{"password":"x","password":null}', '{"password":"[removed]","password":null}'),
        ('{"password":"x", "password" : "y"}', '{"password":"[removed]", "password" : "[removed]"}'),
        ('{"secret":{"a":[1]},"b":[{}]}', '{"secret":"[removed]","b":[{}]}'),
        ('{"p\\u0061ssword":"x"}', '{"p\\u0061ssword":"[removed]"}'),
        (
            '[{"name":"Cookie","value":"x"},[["Cookie","y"]]]',
            '[{"name":"Cookie","value":"[removed]"},[["Cookie","[removed]"]]]',
        ),
        ('"{\\"password\\":\\"x\\"}"', '"{\\"password\\":\\"[removed]\\"}"'),
        ('{"password":"x","cut":"sho', '{"password":"[removed]","cut":"sho'),
        ('got {"password": "x", "n": 1} back', 'got {"password": "[removed]", "n": 1} back'),
        ("{'password': 'x', 'n': 1}", "{'password': '[removed]', 'n': 1}"),
        ('{"password":"x"}\n{"password":"y"}', '{"password":"[removed]"}\n{"password":"[removed]"}'),
        ("[" * 900 + '{"password":"x"}' + "]" * 900, "[" * 900 + '{"password":"[removed]"}' + "]" * 900),
        ("[" * 5000 + '{"password":"x"}' + "]" * 5000, "[" * 5000 + '{"password":"[removed]"}' + "]" * 5000),
    ],
    ids=range(14),
)
def test_json_in_a_string_changes_only_where_the_secret_was(text: str, expected: str) -> None:
    assert after({"arguments": text}) == {"arguments": expected}


def test_json_encoded_several_times_is_followed() -> None:
    text: str = json.dumps({"password": "hunter2", "é": [1.0, None]}, ensure_ascii=False)
    for _ in range(5):
        text = json.dumps({"inner": text}, ensure_ascii=False)
    cleaned = after([text])[0]
    assert cleaned == text.replace("hunter2", GONE)


def test_a_line_of_code_is_told_from_a_pair() -> None:
    for line in (
        *("self.password=password", "api_key=api_key", "login(user, password=pw)", "this.token=token;"),
        *("let apiKey=process.env.API_KEY;", "const token=req.headers.token; foo();", "password=config.pw"),
        *("foo(x, api_key=settings.api_key)", "WHERE password=:password", "password=?", "password=@password"),
        *("password=self.ask()", "API_KEY=os.getenv('A')", "password=form['pw']", "import os; password=abc"),
        *("api_key=api_key,", "password=password)", "token=None,", "auth=auth),", "client_secret=cfg.value,"),
        *(
            "token=data['token'],",
            "auth=AuthHeaders(api_key=key),",
            "url=url, token=api_key, timeout=timeout",
        ),
        *(
            'call("api_key": "YOUR-API-KEY")',
            "user=u; password=self.password; save()",
            "https://x.test/?token=YOUR_TOKEN&a=1",
        ),
    ):
        for mode in ("full", "names"):
            assert redact([line], mode=mode) == ([line], (), ())


def test_a_credential_that_is_a_key_inside_json_text_goes_and_the_rest_stays() -> None:
    key = f"ghp_{RANDOM}abcd"
    text = f' {{"{key}" : 1, "a": [2 ],"{key}":3}}'
    assert after({"text": text}) == {"text": ' {"[removed]" : 1, "a": [2 ],"[removed] 3":3}'}


def test_a_value_of_json_cut_short_goes_with_the_quotes_inside_it() -> None:
    cut = r'{"password": "hun\"ter2\"", "user": "ada", "rest": ['
    assert after({"log": cut}) == {"log": '{"password": "[removed]", "user": "ada", "rest": ['}
    begins_late = 'sword": "x", "password": "hunter2", "user": "ada'
    assert after({"log": begins_late}) == {"log": begins_late.replace("hunter2", GONE)}


# --- formats --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "credential",
    [
        *(
            f"sk-{RANDOM}",
            f"sk-ant-api03-{RANDOM}-{RANDOM}",
            f"sk-proj-{RANDOM}_{RANDOM}",
            f"sk_live_{RANDOM}",
        ),
        *(f"ghp_{RANDOM}", f"gho_{RANDOM}", f"github_pat_{RANDOM[:22]}_{RANDOM}", "AKIAIOSFODNN7EXAMPLE"),
        *(
            f"xoxb-1234567890-{RANDOM}",
            f"xapp-1-{RANDOM}",
            f"AIza{RANDOM}abc",
            f"hf_{RANDOM}",
            f"glpat-{RANDOM}",
        ),
        *(
            f"npm_{RANDOM}",
            f"rmk_{RANDOM}",
            f"GOCSPX-{RANDOM}",
            f"ya29.{RANDOM}",
            f"SG.{RANDOM}.{RANDOM}",
            JWT,
        ),
        *(f"hvs.{RANDOM}", f"whsec_{RANDOM}", f"shpat_{RANDOM}", f"gsk_{RANDOM}"),
    ],
)
def test_a_credential_known_by_its_format_goes_from_any_text(credential: str) -> None:
    for before, behind in [("", ""), ("use ", " here"), ("(", ")."), ("url=", "\n"), ('"', '"')]:
        assert after({"note": f"{before}{credential}{behind}"}) == {"note": f"{before}{GONE}{behind}"}
    assert contains_credential(f"import {credential}")
    warned = redact({"note": credential}, mode="names")
    assert warned == ({"note": credential}, (), ("/note",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Authorization: Bearer {RANDOM}", f"Authorization: Bearer {GONE}"),
        ("curl -H 'authorization: basic dXNlcjpwYXNz'", f"curl -H 'authorization: basic {GONE}'"),
        ("postgres://ada:s3@cret@db/x", f"postgres://ada:{GONE}@db/x"),
        ("redis://:hunter2@cache:6379/0", f"redis://:{GONE}@cache:6379/0"),
        (
            "https://b.test/f?X-Amz-Date=1&X-Amz-Signature=ab",
            f"https://b.test/f?X-Amz-Date=1&X-Amz-Signature={GONE}",
        ),
        ("https://a.test/f?sv=1&sig=a%2Bb", f"https://a.test/f?sv=1&sig={GONE}"),
        ("https://hooks.slack.com/services/T0/B0/abcDEF", f"https://hooks.slack.com/services/{GONE}"),
        (
            "https://discord.com/api/webhooks/123456/aB-c_dEfG",
            f"https://discord.com/api/webhooks/123456/{GONE}",
        ),
        (f"bot 1234567890:AA{RANDOM}a", f"bot 1234567890{GONE}"),
        (
            "A=1\nexport API_KEY=abc\nDB_PASSWORD='x y' # z\n",
            f"A=1\nexport API_KEY={GONE}\nDB_PASSWORD={GONE} # z\n",
        ),
        (
            f"x\n-----BEGIN PRIVATE KEY-----\n{PEM_LINES}-----END PRIVATE KEY-----\ny",
            f"x\n-----BEGIN PRIVATE KEY-----{GONE}-----END PRIVATE KEY-----\ny",
        ),
        (
            f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{PEM_LINES}",
            f"-----BEGIN RSA PRIVATE KEY-----{GONE}",
        ),
    ],
    ids=range(12),
)
def test_a_credential_inside_a_text_goes_and_the_text_stays(text: str, expected: str) -> None:
    assert after({"log": text}) == {"log": expected}


# --- never touched --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        {"usage_metadata": {"input_tokens": 3, "output_token_details": {"reasoning": 1}}},
        {
            "token_usage": {"completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}},
            "max_tokens": 100,
        },
        {
            "logprobs": {
                "content": [
                    {"token": "Hi", "logprob": -0.1, "top_logprobs": [{"token": "Yo", "logprob": -2}]}
                ]
            }
        },
        {"next_page_token": "CAUQAA", "nextPageToken": "x", "sync_token": "y", "continuation_token": "z"},
        {"type": "thinking", "thinking": "…", "signature": JWT},
        {"encrypted_content": f"gAAA.{JWT}", "thoughtSignature": JWT},
        {"session_id": f"sk-{RANDOM}", "thread_id": JWT, "checkpoint_id": "1ef", "run_id": "token-refresh"},
        {
            "type": "object",
            "properties": {"password": {"type": "string", "title": "P"}},
            "required": ["password"],
        },
        {"args": {"api_key": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Api Key"}}},
        {"openai_api_key": {"lc": 1, "type": "secret", "id": ["OPENAI_API_KEY"]}},
        {"password": {"lc": 1, "type": "secret", "id": ["DB_PASSWORD"]}},
        {
            "k": "550e8400-e29b-41d4-a716-446655440000",
            "sha": "d2a84f4b8b650937ec8f73cd8be2c74add5a911ba64df274",
        },
        {
            "mail": "ada@example.test",
            "card": "4242 4242 4242 4242",
            "e": [0.1, -0.2],
            "id": "call_Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8",
        },
        {"text": "Basic understanding of Bearer authentication, a token budget, password rules."},
        {
            "text": "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
            "css": "sk-toggleable__label-arrow",
        },
        {"code": "def f(api_key=None, token=token):\n    return call(password=password, key = 'x')\n"},
        {"code": 'API_KEY = os.environ["API_KEY"]\nTOKEN=$TOKEN\nSECRET=${SECRET}\n', "u": "pg://u:${PW}@h"},
        {
            "u": "https://x.test:8080/a/@b?page=2&max_tokens=5&next_page_token=abc",
            "v": "a=1&b=2",
            "w": "x=1;y=2",
        },
        {"json": '{"max_tokens":5,"next_page_token":"abc","rows":[{"id":1}]}', "ratio": "1.50"},
        {
            "key": "a",
            "keys": ["b"],
            "tokens": ["the", " cat"],
            "token_ids": [1],
            "author": "x",
            "is_secret": "no",
        },
        {"name": "temperature", "value": "hot"},
        {
            "code": "x = a & token=b",
            "line": "token = next(tokens)",
            "prose": "for key=value pairs use token=5",
        },
    ],
    ids=range(22),
)
def test_honest_data_comes_back_as_it_was(value: Any) -> None:
    for mode in ("full", "names"):
        assert redact(copy.deepcopy(value), mode=mode) == (value, (), ())


def test_example_values_in_a_schema_of_a_secret_go() -> None:
    schema = {"type": "string", "default": "a", "const": "b", "examples": ["c"], "description": "d"}
    value = {"properties": {"password": schema, "api_key": {"anyOf": [{"type": "string", "const": "e"}]}}}
    assert after(value) == {
        "properties": {
            "password": {
                "type": "string",
                "default": GONE,
                "const": GONE,
                "examples": GONE,
                "description": "d",
            },
            "api_key": {"anyOf": [{"type": "string", "const": GONE}]},
        }
    }


def test_what_only_resembles_a_schema_or_a_placeholder_goes() -> None:
    for value in (
        {"type": "string", "value": "x"},
        {"lc": 1, "type": "secret", "id": ["a-b c"], "text": "x"},
    ):
        assert after({"password": value}) == {"password": GONE}


# --- reports --------------------------------------------------------------------------------------------


def test_every_removal_is_pointed_at_in_document_order() -> None:
    value = {
        "a/b": {"password": "x"},
        "list": [{"t~": f"ghp_{RANDOM}"}],
        "log": '{"pin": 1234}',
        "secret": {"x": 1},
    }
    assert redact(value, pointer="/state").removed == (
        "/state/a~1b/password",
        "/state/list/0/t~0",
        "/state/log",
        "/state/secret",
    )


def test_a_pointer_shows_no_credential_that_is_a_key() -> None:
    value = {f"sk-{RANDOM}": {"password": "x"}}
    full, names = redact(copy.deepcopy(value)), redact(copy.deepcopy(value), mode="names")
    assert full.removed == (f"/{GONE}/password", f"/{GONE}")
    assert (names.removed, names.warned) == ((f"/{GONE}/password",), (f"/{GONE}",))
    assert list(names.value) == list(value)


def test_a_long_pointer_is_cut_to_a_container() -> None:
    value: Any = {"password": "x"}
    for _ in range(8):
        value = {"k" * 300: value}
    (pointer,) = redact(value).removed
    assert len(pointer) <= MAX_POINTER_CHARACTERS
    assert pointer == f"/{'k' * 300}" * 3


def test_by_names_a_files_text_is_left_alone() -> None:
    value = {
        "files": {
            "config/token.py": f"KEY = 'sk-{RANDOM}'\nTOKEN=abc\n",
            "notes.txt": 'got {"password": "x"} from https://x.test/?token=abc',
        },
        "password": "x",
    }
    done = redact(copy.deepcopy(value), mode="names")
    assert done.value == value | {"password": GONE}
    assert done.removed == ("/password",)
    assert done.warned == ("/files/config~1token.py", "/files/notes.txt")


def test_plain_labels_hold_no_credential() -> None:
    for label in (
        "invoice-import",
        "imported invoice 312 of 400",
        "reset password of user 5",
        "token-refresh",
    ):
        assert not contains_credential(label)


def test_only_short_labels_are_remembered() -> None:
    redaction._label_holds.cache_clear()
    for number in range(3_000):
        assert not contains_credential(f"invoice {number}")
        assert not contains_credential(f"invoice {number}\n" * 30)
        assert contains_credential(f"ghp_{RANDOM}\n" + f"invoice {number}\n" * 30)
    remembered = redaction._label_holds.cache_info()
    assert (remembered.misses, remembered.currsize) == (3_000, 2_048)


@pytest.mark.parametrize(
    "value",
    [
        {"command": "curl -u me:12345 http://x"},
        {"command": "curl -u me:$PASSWORD http://x"},
        {"selector": "#user", "name": "password", "text": "ann-smith"},
    ],
)
def test_what_only_stands_beside_the_name_of_a_secret_stays(value: dict[str, Any]) -> None:
    assert redact(copy.deepcopy(value)) == (value, (), ())


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"command": "curl -u me:geheim1 http://x"}, {"command": "curl -u me:[removed] http://x"}),
        (
            {"selector": "#password", "name": "field", "text": "hunter22"},
            {"selector": "#password", "name": "field", "text": "[removed]"},
        ),
    ],
)
def test_what_is_typed_or_given_as_a_login_goes(value: dict[str, Any], kept: dict[str, Any]) -> None:
    assert redact(value).value == kept
