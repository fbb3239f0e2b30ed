"""Named values inside a text: query strings, forms, connection strings, dotenv lines and quoted pairs.

Belongs here: finding a name, asking `secret_names` about it, and where its value begins and ends. Does not
belong here: whole JSON texts (`nested_json`) and values that give themselves away (`secret_formats`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from runmemory_core.policy.secret_formats import MARKER, Span, is_template
from runmemory_core.policy.secret_names import Secrecy, secrecy, split_words

_MAX_NAME = 64
_BLANK = re.compile(r"\s")
_EQUALS = re.compile(r"=(?<=[\w\]]=)(?=[^\s=])")
_BEFORE_NAME = re.compile(r".{0,64}[^\w.%\[\]\-]", re.DOTALL)
_QUOTED_COLONS = (
    re.compile(r"""":\s{0,8}(?P<quote>\\*+")"""),
    re.compile(r"""':\s{0,8}(?P<quote>\\*+')"""),
)
_PAIR_ENDS = re.compile(r"[ \t]{0,8}(?:[,}\]\r\n]|\\[rn]|\Z)")

_QUERY_VALUES = tuple(
    re.compile(rf"""{separator}(?P<name>[\w.%~\[\]\-]{{1,64}})=(?P<value>[^&#;\s"'<>\\)\]}},]++)""")
    for separator in (r"\?", "&", "#", "--")
)
_LINE_VALUE = re.compile(r"""=(?<=[A-Z0-9_]=)(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s#"'`(][^\s#]*+)""")
# What goes on to the end of the line in plain words belongs to a password; keys and tokens hold no blanks.
_MORE_WORDS = re.compile(r"(?:[ \t]{1,8}[A-Za-z0-9]{1,64}+){1,16}+(?=[ \t\r]{0,8}(?:\n|\Z))")
_LINE_NAME = re.compile(r"[ \t]*+(?:(?:export|set|ENV|ARG|-)[ \t]++)?([A-Z][A-Z0-9_]{1,63})")
_TOLD = re.compile(
    r"""(?P<name>\b[A-Za-z][\w.\-]{0,63})["']?[ ]?(?:=>?|:)[ ]{0,2}"""
    r"""(?=(?P<value>"[^"\n]*+"|'[^'\n]*+'|[^\s"'&,;<>(){}\[\]]++))"""
)
_LONE_NAME = re.compile(r"-{0,2}\??([A-Za-z_][\w .%\[\]\-]{0,63})=")
# In a query string or a form everything is text, also what names no secret.
_NO_SECRETS = frozenset({"", "true", "false", "null", "none"})
# A bare parameter of a query, a call or a look-up, and a variable or a path to one.
_PARAMETER = re.compile(r"\?|[:@]\w{1,64}+")
_CALL_BEGINS = re.compile(r"[A-Za-z_$][\w.$]{0,64}+[(\[]")
_PATH = re.compile(r"(?:[A-Za-z_$]{1,40}+\d?(?:\.|->|::)){0,8}+[A-Za-z_$]{1,40}+")
_NAMES = re.compile(r"[A-Za-z_$][A-Za-z_$.:>\-]{0,63}+")
_PATH_SIGN = re.compile(r"\.|->|::")
# Pairs between blanks are a connection string where one of them says where to.
_CONNECTS = frozenset({"host", "hostaddr", "hostname", "server", "dbname", "database", "user", "port"})
_SIGNATURES = frozenset({"sig", "signature"})


def find_named(text: str) -> Iterator[int]:
    """Positions of `name=` with a name that may be secret: quick, and more than will be removed."""
    harmless: set[str] = set()
    for match in _EQUALS.finditer(text):
        sign = match.start()
        earliest = max(0, sign - _MAX_NAME)
        before = _BEFORE_NAME.match(text, earliest, sign)
        name = text[before.end() if before else earliest : sign]
        if name in harmless:
            continue
        if _gives_away(name):
            yield sign
        else:
            harmless.add(name)


def find_quoted_named(text: str) -> Iterator[int]:
    """Positions of `"name": "` with a name that is secret."""
    for name, start, _ in _quoted_pairs(text):
        if secrecy(name):
            yield start


def find_named_values(text: str, *, in_prose: bool) -> list[Span]:
    """Where the values stand that a name beside them gives away.

    Without ``in_prose`` only a text that is nothing but a URL, a form or a connection string is looked at.
    """
    spans: list[Span] = []
    if "=" in text:
        spans += _find_whole_pairs(text, in_prose=in_prose)
        if in_prose or not _BLANK.search(text):
            for pattern in _QUERY_VALUES:
                spans += (m.span("value") for m in pattern.finditer(text) if is_secret(m["name"], m["value"]))
        if in_prose:
            spans += _find_lines(text)
    if in_prose:
        spans += _find_quoted(text)
    return spans


def find_told_values(text: str) -> list[Span]:
    """Where values stand in a sentence such as `refused: password=hunter2`.

    For words of errors only: in program code, which a state may hold, `token=token` is no secret.
    """
    return [
        match.span("value")
        for match in _TOLD.finditer(text)
        if MARKER not in match["value"] and is_secret(match["name"], match["value"])
    ]


def _gives_away(name: str) -> bool:
    return secrecy(unquote(name) if "%" in name else name) > Secrecy.NONE or name.lower() in _SIGNATURES


def is_secret(name: str, value: str) -> bool:
    """Whether a name gives a text away that is not just a place for one."""
    return (
        _gives_away(name)
        and value.lower() not in _NO_SECRETS
        and not is_template(value)
        and not _stands_for(name, value)
    )


def _find_whole_pairs(text: str, *, in_prose: bool) -> list[Span]:
    """Spans in a text that is pairs throughout: `a=1;b=2`, `a=1&b=2`, `a=1 b=2` or one `--name=value`.

    Without ``in_prose`` what may as well be a line of a program is left alone: one pair, or pairs that name no host.
    """
    if "\n" in text:
        return []
    separator = next((separator for separator in ";& " if separator in text), ";")
    if separator == "&" and ("://" in text or _BLANK.search(text)):
        return []
    found: list[tuple[str, str, Span]] = []
    start = 0
    for part in text.split(separator):
        if pair := _LONE_NAME.match(part, len(part) - len(part.lstrip())):
            value = part[pair.end() :]
            found.append((pair[1].strip(), value.strip(), _span_of(value, start + pair.end())))
        elif part.strip() and (start or not _may_lead(part, text[len(part) :])):
            return []
        start += len(part) + len(separator)
    if not in_prose and not _is_configuration(text, separator, [name.lower() for name, *_ in found]):
        return []
    is_alone = len(found) == 1 and not text.startswith("--")
    return [
        span
        for name, value, span in found
        if is_secret(name, value.strip("\"',")) and not is_code(name, value, is_alone=is_alone)
    ]


def _span_of(value: str, start: int) -> Span:
    """Where a value stands that begins at ``start``; a comma behind it belongs to a program."""
    kept = value.rstrip()
    return start, start + (len(kept.rstrip(",")) if kept.endswith(",") else len(value))


def _may_lead(word: str, rest: str) -> bool:
    """Whether pairs may follow a first word that is none: an address, or the name of a command."""
    return "://" in word if rest.startswith(";") else rest.lstrip().startswith("--")


def _is_configuration(text: str, separator: str, names: list[str]) -> bool:
    if text.startswith("--"):
        return True
    return len(names) > 1 and (separator != " " or not _CONNECTS.isdisjoint(names))


def is_code(name: str, value: str, *, is_alone: bool) -> bool:
    """Whether a value is an expression: one that computes, a parameter of a query, or a variable.

    A variable is told from a secret by its name, which ends as that of the value does, by the comma or bracket behind
    it, and where one pair ``is_alone``, by the dots in it.
    """
    bare = value.rstrip(",")
    if _PARAMETER.fullmatch(bare) or _is_call(bare):
        return True
    bare = bare.rstrip(")")
    if not _PATH.fullmatch(bare):
        return False
    goes_on = bare != value
    return goes_on or _stands_for(name, bare) or (is_alone and _PATH_SIGN.search(bare) is not None)


def _is_call(value: str) -> bool:
    return value.endswith((")", "]")) and _CALL_BEGINS.match(value) is not None


def _stands_for(name: str, value: str) -> bool:
    """Whether a value names what it would be: `YOUR_TOKEN`, or the variable `new_password`."""
    return _NAMES.fullmatch(value) is not None and split_words(value)[-1:] == split_words(name)[-1:]


def _find_lines(text: str) -> Iterator[Span]:
    """Values in dotenv lines: upper case, no blank around the sign, which tells them from program code."""
    for match in _LINE_VALUE.finditer(text):
        sign = match.start()
        earliest = max(0, sign - _MAX_NAME - 16)
        line = text.rfind("\n", earliest, sign) + 1
        if line == 0 < earliest:
            continue
        name = _LINE_NAME.fullmatch(text, line, sign)
        value = match["value"].strip("\"'")
        if name and is_secret(name[1], value) and not _is_call(value):
            phrase = _MORE_WORDS.match(text, match.end()) if secrecy(name[1]) > Secrecy.STRINGS else None
            yield match.start("value"), phrase.end() if phrase else match.end()


def _find_quoted(text: str) -> Iterator[Span]:
    """Values in `"name": "value"`: what is left of JSON cut short, also in the value, or printed by a program."""
    for name, start, quote in _quoted_pairs(text):
        end = text.find(quote, start)
        while end > 0 and text[end - 1] == "\\":
            end = text.find(quote, end + len(quote))
        if end < 0 and _is_quoted_secret(name, text[start:]):
            yield start, len(text)
        closes = end > start and _PAIR_ENDS.match(text, end + len(quote))
        if closes and _is_quoted_secret(name, text[start:end]):
            yield start, end


def _is_quoted_secret(name: str, value: str) -> bool:
    return bool(secrecy(name)) and not is_template(value) and not _stands_for(name, value)


def _quoted_pairs(text: str) -> Iterator[tuple[str, int, str]]:
    """Name, start of the value, and its quote at the escaping depth it is written in."""
    for pattern in _QUOTED_COLONS:
        for match in pattern.finditer(text):
            quote = match["quote"]
            name_end = match.start() + 1 - len(quote)
            opening = text.rfind(quote, max(0, name_end - _MAX_NAME - len(quote)), max(0, name_end))
            if opening >= 0 and text.startswith(quote, name_end):
                yield text[opening + len(quote) : name_end], match.end(), quote
