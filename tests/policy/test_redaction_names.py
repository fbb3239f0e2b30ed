"""Which names are secrets: the labelled corpus, the sources held out of it, and ordinary words."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from runmemory_core.policy.redaction import names_secret
from runmemory_core.policy.secret_names import CACHED_NAMES, Secrecy, secrecy

CORPUS = Path(__file__).parents[1] / "data" / "redaction_keys.tsv"
# Rows of these sources were not looked at while the rules and words were written.
HELD_OUT = ("aws", "google")


class Score(NamedTuple):
    precision: float
    recall: float


def score(accepts: Callable[[str], bool]) -> Score:
    counts: dict[str, int] = defaultdict(int)
    with CORPUS.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows, delimiter="\t"):
            if row["label"] != "ambiguous" and accepts(row["source"]):
                counts[f"{row['label']} {names_secret(row['key'])}"] += 1
    caught, missed, wrong = counts["secret True"], counts["secret False"], counts["not True"]
    return Score(caught / (caught + wrong), caught / (caught + missed))


def test_the_whole_corpus_is_judged_within_the_bounds() -> None:
    measured = score(lambda _: True)
    assert measured.precision >= 0.93
    assert measured.recall >= 0.98


def test_sources_never_looked_at_are_judged_within_the_bounds() -> None:
    measured = score(lambda source: source in HELD_OUT)
    assert measured.precision >= 0.93
    assert measured.recall >= 0.98


@pytest.mark.parametrize(
    "name",
    [
        *(
            "apiKey",
            "APIKey",
            "API_KEY",
            "api key",
            "api.key",
            "x-api-key",
            "apikey",
            "acmeapikey",
            "_api_key_1",
        ),
        *(
            "OAuthToken",
            "dbpassword",
            "csrfmiddlewaretoken",
            "userPassWord",
            "pass_word",
            "password2",
            "clientsecret",
        ),
        *(
            "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44",
            "p\u0430ssword",
            "pas\u200bsword",
            "api\u00adkey",
            "pássword",
            "\u0442\u043eken",
            "P4ssw0rd",
            "s3cret",
        ),
        *(
            "contraseña",
            "пароль",
            "密码",
            "パスワード",
            "user[password]",
            "headers.Authorization",
            "|password|",
        ),
    ],
)
def test_a_secret_is_known_however_it_is_written(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize(
    ("secret", "honest"),
    [
        ("password", "password_length"),
        ("secret", "secret_arn"),
        ("cookie", "cookie_policy"),
        ("credentials", "credential_id"),
        ("jwt", "jwt_algorithm"),
        ("otp", "otp_enabled"),
        ("dsn", "has_dsn"),
        ("reset_password_token", "password_reset_required"),
        ("access_token", "next_page_token"),
        ("access_tokens", "output_tokens"),
        ("bot_token", "eos_token"),
        ("sync_api_token", "sync_token"),
        ("api_key", "cache_key"),
        ("openai_key", "primary_key"),
        ("signing_key", "public_signing_key"),
        ("ssh_key", "ssh_public_key"),
        ("stripe_live_key", "idempotency_key"),
        ("connection_string", "connection_timeout"),
        ("database_url", "base_url"),
        ("webhook_url", "webhook_id"),
        ("card_number", "page_number"),
        ("recovery_codes", "zip_codes"),
        ("code_verifier", "code_challenge"),
        ("seed_phrase", "search_phrase"),
        ("pass", "first_pass"),
        ("smtp_pass", "pass_rate"),
        ("pin", "pin_to_top"),
        ("basic_auth", "auth_method"),
        ("authorization", "authorization_endpoint"),
        ("saml_response", "api_response"),
        ("secret_for_reviewer", "secret_reviewer"),
        ("api_key_value", "api_key_name"),
    ],
)
def test_the_head_noun_and_its_neighbours_decide(secret: str, honest: str) -> None:
    assert names_secret(secret)
    assert not names_secret(honest)


@pytest.mark.parametrize(
    "word",
    [
        *(
            "compass",
            "passenger",
            "passport",
            "bypass",
            "encompass",
            "secretary",
            "secretion",
            "monkey",
            "turkey",
        ),
        *(
            "hockey",
            "keyboard",
            "keywords",
            "tokenizer",
            "author",
            "authentic",
            "credit",
            "sacred",
            "accredited",
        ),
        *(
            "spinning",
            "pinned",
            "opinion",
            "rookie",
            "cookbook",
            "session",
            "assessment",
            "design",
            "passwordless",
        ),
    ],
)
def test_an_ordinary_word_that_contains_a_secret_word_is_kept(word: str) -> None:
    assert not names_secret(word)


@pytest.mark.parametrize(
    "text",
    ["", " ", "___", "/oauth/token", "https://x.test/auth/token", "GET /login/password", "password " * 20],
)
def test_a_path_an_address_or_a_sentence_is_no_name(text: str) -> None:
    assert not names_secret(text)


def test_only_codes_and_passwords_are_secret_as_numbers() -> None:
    assert {
        name: secrecy(name) for name in ("pin", "otp", "cvv", "password", "secret", "token", "api_key")
    } == {
        **dict.fromkeys(("pin", "otp", "cvv", "password"), Secrecy.NUMBERS_TOO),
        "secret": Secrecy.WHOLE,
        **dict.fromkeys(("token", "api_key"), Secrecy.STRINGS),
    }


def test_the_cache_of_decisions_is_bounded() -> None:
    from runmemory_core.policy import secret_names

    for number in range(CACHED_NAMES + 100):
        secrecy(f"key_{number}_name")
    assert secret_names._judge.cache_info().currsize == CACHED_NAMES
