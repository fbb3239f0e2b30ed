"""Whether a key names a secret, judged by its head noun: `auth_token` does, `token_count` does not.

A name is split into words, the last word that could be a head is looked up, and its neighbours decide.
Belongs here: normalising, splitting and these rules. Does not belong here: the words (`secret_words`) and
what is done with the value.
"""

from __future__ import annotations

import enum
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from runmemory_core.policy import secret_words as w

MAX_NAME_CHARACTERS = 120
MAX_NAME_WORDS = 10
MAX_GLUED_CHARACTERS = 40
CACHED_NAMES = 8192


class Secrecy(enum.IntEnum):
    """How much of a value its name takes with it."""

    NONE = 0
    STRINGS = 1
    """Text goes; numbers stay, and containers are judged member by member."""
    WHOLE = 2
    """Text and containers go; numbers stay."""
    LONG_NUMBERS_TOO = 3
    """Text and containers go, and of numbers those that are long enough for a card's."""
    NUMBERS_TOO = 4
    """Text, containers and numbers go."""


_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝкмтвнгёАЕОРСУХІЈЅҺКМТВНαειικορτυνχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwkmtbhreAEOPCYXIJSHKMTBHaeiikoptuvxABEZHIKMNOPTYX",
)
_LEET = str.maketrans("01345@$", "oleasas")
_LEET_RUN = re.compile(r"(?<![A-Za-z])[A-Za-z]++[01345@$]++[A-Za-z][A-Za-z01345@$]*+")
_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|[^\W\d_A-Za-z]+|\d+")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_LATIN = re.compile(r"[A-Za-z]")
_VERSION = re.compile(r"v?\d+|[a-z]")
_FOLDER_OR_URL = re.compile(r"(?:^|\s)/|://")


def secrecy(name: str) -> Secrecy:
    """How secret the value under ``name`` is; decisions are cached."""
    return _judge(name) if len(name) <= MAX_NAME_CHARACTERS else Secrecy.NONE


def split_words(name: str) -> list[str]:
    """The lower-case words of a name in snake, camel, kebab, dotted or glued writing."""
    plain = name if name.isascii() else _fold(_strip_invisible(unicodedata.normalize("NFKC", name)))
    words = [word for match in _WORD.finditer(_undo_leet(plain)) for word in _unglue(match[0].lower())]
    return _join(words)


@lru_cache(maxsize=CACHED_NAMES)
def _judge(name: str) -> Secrecy:
    if _FOLDER_OR_URL.search(name):
        return Secrecy.NONE
    words = split_words(name)
    while words and _VERSION.fullmatch(words[-1]):
        words.pop()
    if not 0 < len(words) <= MAX_NAME_WORDS:
        return Secrecy.NONE
    for place in reversed(range(len(words))):
        rule = _HEADS.get(words[place])
        verdict = rule(words[:place], words[place], words[place + 1 :]) if rule else None
        if verdict is not None:
            return verdict
    return Secrecy.NONE


# --- from a name to words -------------------------------------------------------------------------------


def _strip_invisible(text: str) -> str:
    return "".join(c for c in text if unicodedata.category(c) != "Cf")


def _fold(text: str) -> str:
    """Letters without accents; lookalikes from other alphabets within a Latin word as what they pass for."""
    latin = _LETTERS.sub(lambda run: run[0].translate(_LOOKALIKES) if _LATIN.search(run[0]) else run[0], text)
    decomposed = unicodedata.normalize("NFD", latin)
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def _undo_leet(text: str) -> str:
    def undo(match: re.Match[str]) -> str:
        word = match[0].lower().translate(_LEET)
        return word if word in _LEET_WORDS else match[0]

    return _LEET_RUN.sub(undo, text) if not text.isalpha() else text


def _join(words: list[str]) -> list[str]:
    joined: list[str] = []
    for word in words:
        if joined and (whole := _JOINED.get((joined[-1], word))):
            joined[-1] = whole
        else:
            joined.append(word)
    return joined


def _unglue(word: str) -> list[str]:
    """The pieces of a word written without separators, or the word itself where the vocabulary ends."""
    word = word if word in _VOCABULARY else word.rstrip("0123456789") or word
    if word in _VOCABULARY or len(word) > MAX_GLUED_CHARACTERS or not _HEAD_INSIDE.search(word):
        return [word]
    best: list[list[str] | None] = [[]]
    for end in range(1, len(word) + 1):
        found: list[str] | None = None
        for start in range(max(0, end - _LONGEST_PIECE), end):
            before = best[start]
            if (
                before is not None
                and word[start:end] in _PIECES
                and (not found or len(before) + 1 < len(found))
            ):
                found = [*before, word[start:end]]
        best.append(found)
    if pieces := best[-1]:
        return pieces
    ending = next((ending for ending in w.DISTINCT_ENDINGS if word.endswith(ending)), "")
    return [word.removesuffix(ending), *_unglue(ending)] if ending else [word]


# --- the rules of the heads -----------------------------------------------------------------------------
# Each takes the words before the head, the head and the words after it. None: not a head here, look on.

_Rule = Callable[[Sequence[str], str, Sequence[str]], Secrecy | None]


def _always(before: Sequence[str], head: str, after: Sequence[str]) -> Secrecy:
    purpose = next((place for place, word in enumerate(after) if word in w.PURPOSE), len(after))
    if _is_about(before, after[:purpose]) or w.PUBLIC.intersection(before[-1:]):
        return Secrecy.NONE
    if head == "secret" and not before and after[:purpose] and _is_other_thing(after[0]):
        return Secrecy.NONE  # here it only says how something is: a secret ingredient
    return Secrecy.NUMBERS_TOO if head in _SECRET_NUMBERS else Secrecy.WHOLE


def _token(before: Sequence[str], head: str, after: Sequence[str]) -> Secrecy:
    if _is_about(before, after) or w.NAMED_BY.intersection(after):
        return Secrecy.NONE
    for word in reversed(before):
        if word in w.TOKEN_IS_SECRET_AFTER or word in w.VENDORS:
            return Secrecy.STRINGS
        if head == "token" and word in w.ONE_TOKEN_IS_SECRET_AFTER:
            return Secrecy.STRINGS
        if head == "tokens" or word in w.TOKEN_IS_BENIGN_AFTER:
            return Secrecy.NONE
    if head == "tokens" or any(word not in _CARRIES_BARE_TOKEN for word in after):
        return Secrecy.NONE
    return Secrecy.STRINGS


def _key(before: Sequence[str], head: str, after: Sequence[str]) -> Secrecy:
    if not before:
        return Secrecy.STRINGS if after in (["material"], ["string"]) else Secrecy.NONE
    if _is_about(before, after) or w.NAMED_BY.intersection(after) or w.PUBLIC.intersection(before):
        return Secrecy.NONE
    word = "service" if before[-2:] == ["service", "role"] else before[-1]
    if head == "key" and word in w.ONE_KEY_IS_SECRET_AFTER:
        return Secrecy.STRINGS
    owned = next((word for word in reversed(before) if word not in w.KEY_BELONGS_TO), "")
    return Secrecy.STRINGS if owned in w.KEY_IS_SECRET_AFTER or owned in w.VENDORS else Secrecy.NONE


def _authorization(before: Sequence[str], _head: str, after: Sequence[str]) -> Secrecy | None:
    fits = all(word in w.AUTH_FITS or word in w.VENDORS for word in before)
    if not fits or any(word not in _CARRIES_AUTH for word in after):
        return None
    return Secrecy.STRINGS


def _number(before: Sequence[str], head: str, after: Sequence[str]) -> Secrecy | None:
    return _CARD_NUMBER(before, head, after) or _SHORT_NUMBER(before, head, after)


def _beside(fits: frozenset[str], secrecy: Secrecy, *, alone: bool = False) -> _Rule:
    """The rule of a head that is secret beside a fitting word on its left, or with nothing around it."""

    def rule(before: Sequence[str], _head: str, after: Sequence[str]) -> Secrecy | None:
        if before and before[-1] not in fits and not (alone and before[-1] in w.VENDORS):
            return None
        if not before and not (alone and all(word in w.CARRIERS for word in after)):
            return None
        return Secrecy.NONE if _is_about(before, after) else secrecy

    return rule


def _is_about(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the name is a switch, a count or a property of the secret rather than the secret."""
    return any(word in w.SWITCHES for word in before) or any(_is_metadata(word) for word in after)


def _is_other_thing(word: str) -> bool:
    return word not in _VOCABULARY or word in w.TOKEN_IS_BENIGN_AFTER - w.CARRIERS - w.KEY_BELONGS_TO


def _is_metadata(word: str) -> bool:
    if word in w.CARRIERS or word in w.VENDORS:
        return False
    return word in w.METADATA or (len(word) > 4 and word.endswith(w.METADATA_ENDINGS))


# --- the tables, made once ------------------------------------------------------------------------------

_SECRET_NUMBERS = frozenset(map(_fold, w.ALWAYS_SECRET_AS_NUMBER))
_ALWAYS = frozenset(map(_fold, w.ALWAYS_SECRET)) | _SECRET_NUMBERS
_CARRIES_AUTH = w.CARRIERS | {"code"}
_CARRIES_BARE_TOKEN = (w.CARRIERS | w.VENDORS) - {
    "text",
    "str",
    "string",
    "strings",
    "bytes",
    "list",
    "array",
}
_CARD_NUMBER = _beside(w.NUMBER_FITS, Secrecy.LONG_NUMBERS_TOO)
_SHORT_NUMBER = _beside(w.SHORT_NUMBER_FITS, Secrecy.NUMBERS_TOO)
_HEADS: dict[str, _Rule] = {
    **dict.fromkeys(_ALWAYS, _always),
    **dict.fromkeys(("token", "tokens"), _token),
    **dict.fromkeys(("key", "keys"), _key),
    **dict.fromkeys(("auth", "authorization", "authentication", "bearer"), _authorization),
    **dict.fromkeys(("code", "codes"), _beside(w.CODE_FITS, Secrecy.NUMBERS_TOO)),
    **dict.fromkeys(("url", "uri", "urls"), _beside(w.URL_FITS, Secrecy.STRINGS)),
    **dict.fromkeys(("number", "num", "no", "pan"), _number),
    **dict.fromkeys(("string", "str"), _beside(w.STRING_FITS, Secrecy.STRINGS)),
    **dict.fromkeys(("phrase", "words"), _beside(w.PHRASE_FITS, Secrecy.WHOLE)),
    **dict.fromkeys(("answer", "answers"), _beside(w.ANSWER_FITS, Secrecy.STRINGS)),
    **dict.fromkeys(("config", "cfg"), _beside(w.CONFIG_FITS, Secrecy.STRINGS)),
    "value": _beside(frozenset({"verification"}), Secrecy.NUMBERS_TOO),
    "assertion": _beside(w.ASSERTION_FITS, Secrecy.STRINGS),
    "response": _beside(frozenset({"saml"}), Secrecy.STRINGS),
    "seed": _beside(w.SEED_FITS, Secrecy.NUMBERS_TOO),
    "verifier": _beside(frozenset({"code", "oauth", "pkce"}), Secrecy.STRINGS),
    "signature": _beside(frozenset({"access", "amz", "goog"}), Secrecy.STRINGS),
    "pat": _beside(w.VENDORS | {"ext", "devops"}, Secrecy.STRINGS),
    "sid": _beside(frozenset({"connect"}), Secrecy.STRINGS),
    "link": _beside(frozenset({"magic"}), Secrecy.STRINGS),
    "pass": _beside(w.PASS_FITS, Secrecy.NUMBERS_TOO, alone=True),
    "pin": _beside(w.PIN_FITS, Secrecy.NUMBERS_TOO, alone=True),
}
_JOINED = {pair: word for word, pair in w.JOINED.items()}
_LEET_WORDS = _ALWAYS | {"token", "key", "apikey"}
_FITS = frozenset[str]().union(
    *(w.PASS_FITS, w.PIN_FITS, w.AUTH_FITS, w.CODE_FITS, w.URL_FITS, w.STRING_FITS),
    *(w.NUMBER_FITS, w.SHORT_NUMBER_FITS),
)
_LEFTS = frozenset[str]().union(
    *(w.TOKEN_IS_SECRET_AFTER, w.ONE_TOKEN_IS_SECRET_AFTER, w.TOKEN_IS_BENIGN_AFTER, w.PUBLIC),
    *(w.KEY_IS_SECRET_AFTER, w.ONE_KEY_IS_SECRET_AFTER, w.KEY_BELONGS_TO),
)
_AROUND = w.VENDORS | w.METADATA | w.CARRIERS | w.SWITCHES | w.JOINED.keys()
_VOCABULARY = _HEADS.keys() | _FITS | _LEFTS | _AROUND
_PIECES = frozenset(
    word for word in _VOCABULARY | w.GLUE if len(word) > 2 or word in {"db", "id", "my", "is"}
)
_HEAD_INSIDE = re.compile("|".join(map(re.escape, sorted(_HEADS.keys() & _PIECES))))
_LONGEST_PIECE = max(map(len, _PIECES))
