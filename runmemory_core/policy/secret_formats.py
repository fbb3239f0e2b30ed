"""Credentials recognised by how they look, wherever they stand in a text.

Every rule is linear: repeats are bounded, possessive, or end at a character they cannot contain. Belongs
here: vendor keys, tokens, keys in PEM, logins in URLs and webhook addresses. Does not belong here: what a
name gives away (`secret_names`, `secret_pairs`), and entropy, e-mail addresses and card numbers, which are
honest data as often as not.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator

MARKER = "[removed]"
BOUNDARY = "\0"
"""No credential reaches across it: texts joined by it can be searched as one."""

Span = tuple[int, int]

_USERINFO = re.compile(r"(?<=//)[^/?#]*@")
_PASSWORD_PARAMETER = re.compile(r"(password=)[^&]*", re.IGNORECASE)

# Nothing but a credential begins so.
_DISTINCT_PREFIXES = (
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "sk_live_", "sk_test_", "rk_live_", "rk_test_"),
    *("whsec_", "shpat_", "shpss_", "shpca_", "shppa_", "lin_api_", "figd_", "gsk_", "lsv2_pt_", "lsv2_sk_"),
    *(
        "pcsk_",
        "sntrys_",
        "sntryu_",
        "dckr_pat_",
        "glsa_",
        "sbp_",
        "sb_secret_",
        "bkua_",
        "rubygems_",
        "phx_",
    ),
    *("dop_v1_", "doo_v1_", "dor_v1_", "shippo_live_", "rdme_", "ntn_", "rmk_", "glpat-", "gldt-", "glrt-"),
    *("glcbt-", "glptt-", "glft-", "glsoat-", "glimt-", "glagent-", "glrtr-", "GOCSPX-", "xapp-", "pypi-"),
    *("sk-ant-", "sk-proj-", "sk-svcacct-", "sk-or-", "tvly-", "pplx-", "nvapi-", "tskey-", "PMAK-", "NRAK-"),
    *(
        "CFPAT-",
        "AGE-SECRET-KEY-",
        "sq0atp-",
        "sq0csp-",
        "xoxa-",
        "xoxb-",
        "xoxc-",
        "xoxd-",
        "xoxe-",
        "xoxo-",
    ),
    *("xoxp-", "xoxr-", "xoxs-", "xoxb-", "napi_", "ctx7sk-", "fc-", "dapi_"),
)
# Honest names begin so as well: what follows must not read like words.
_WORDY_PREFIXES = ("sk-", "sk_", "hf_", "npm_", "key-", "xai-", "csk-", "fw_", "r8_", "secret_")
_PREFIXES = tuple(sorted({*_DISTINCT_PREFIXES, *_WORDY_PREFIXES}, key=len, reverse=True))
_WORDS = re.compile(r"[A-Za-z]{1,15}(?:[-_]{1,2}[A-Za-z]{1,15})*+[-_]?\d{0,3}")


def _prefix_end(sign: str) -> re.Pattern[str]:
    """Where a prefix may end: at its last character, after the two that stand before it in some prefix."""
    before = sorted({prefix[-3:-1] for prefix in _PREFIXES if prefix.endswith(sign)})
    return re.compile(rf"{sign}(?<=(?:{'|'.join(before)}){sign})(?=[\w\-]{{16}})")


_PREFIX_ENDS = tuple((sign, _prefix_end(sign)) for sign in "_-")
_PREFIXED = re.compile(rf"(?<![\w\-])({'|'.join(map(re.escape, _PREFIXES))})([A-Za-z0-9_\-]{{16,}}+)=*+")
_LONGEST_PREFIX = len(_PREFIXES[0])

_PEM_BODY = re.compile(r"[A-Za-z0-9+/]{16}")
_PEM_CUT_OFF = re.compile(
    r"(?:[\w\-]{2,20}: [^\n\\]{0,200}|\s|\\[nr])*+"
    r"(?:[A-Za-z0-9+/=]{16,}+(?:\s|\\[nr])*+)*+(?:[A-Za-z0-9+/=]*\Z)?"
)
_TEMPLATE = re.compile(r"\$.*|\{.*|<.*|%[({]?\w.*|\*+|x{3,}|X{3,}|\.{3}|…|\[.*|", re.DOTALL)
_DIGIT = re.compile(r"\d")


def is_template(value: str) -> bool:
    """Whether a value only stands for one: empty, masked, removed before, or a variable to fill in."""
    return _TEMPLATE.fullmatch(value) is not None


def _has_colon_inside(match: re.Match[str]) -> bool:
    """A basic login decodes to user:password; `basic understanding` does not."""
    secret = match["secret"]
    try:
        return b":" in base64.b64decode(secret + "=" * (-len(secret) % 4), validate=True)
    except ValueError:
        return False


def _is_long(match: re.Match[str]) -> bool:
    """A bearer token is long or has a digit; `Bearer authentication` is neither."""
    return len(match["secret"]) >= 24 or _DIGIT.search(match["secret"]) is not None


def _is_no_template(match: re.Match[str]) -> bool:
    return not is_template(match["secret"])


# Each pattern begins with a literal, which is looked for in the whole text first: of the many rules few
# have to be tried. What must stand before it is looked back for. Where there is a group `secret`, only that goes.
_RULES: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], bool] | None], ...] = tuple(
    (literal, re.compile(re.escape(literal) + pattern), check)
    for literal, pattern, check in (
        ("A", r"(?<![A-Za-z0-9]A)(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])", None),
        ("A", r"(?<![A-Za-z0-9]A)Iza[\w\-]{30,}+", None),
        ("A", r"(?<![A-Za-z0-9]A)TATT[\w\-=]{30,}+", None),
        ("ya29.", r"(?<![A-Za-z0-9]ya29\.)[\w\-]{16,}+", None),
        ("SG.", r"(?<![A-Za-z0-9]SG\.)[\w\-]{16,64}\.[\w\-]{16,}+", None),
        ("hv", r"(?<![A-Za-z0-9]hv)[sb]\.[\w\-]{20,}+", None),
        ("whsec_", r"(?<![\w\-]whsec_)[A-Za-z0-9+/]{20,}+=*+", None),
        ("dp.", r"(?<![\w.]dp\.)[a-z]{2,5}\.[A-Za-z0-9]{40,}+", None),
        ("1//0", r"(?<![\w/]1//0)[\w\-]{30,}+", None),
        ("EAA", r"(?<![\w+/=\-]EAA)[A-Z][A-Za-z0-9]{80,}+(?![\w+/=\-])", None),
        ("dapi", r"(?<![A-Za-z0-9]dapi)[0-9a-f]{32}", None),
        (":AA", r"(?<=\d{8}:AA)[\w\-]{32,34}", None),
        ("eyJ", r"(?<![\w\-]eyJ)[\w\-]{8,}+\.[\w\-]{4,}+\.[\w\-]*+(?:\.[\w\-]*+\.[\w\-]*+)?", None),
        *((c, rf"(?<![\w\-.]{c})[\w\-]{{22,27}}\.[\w\-]{{6}}\.[\w\-]{{27,}}+", None) for c in "MNO"),
        ("earer", r"(?<=[Bb]earer)[ \t]++(?P<secret>[\w.~+/\-]{8,}+=*+)", _is_long),
        ("asic", r"(?<=[Bb]asic)[ \t]++(?P<secret>[\w+/\-]{8,}+=*+)", _has_colon_inside),
        ("://", r"""[^\s/?#:@"'<>`\0]{0,256}:(?P<secret>[^\s/?#"'<>`\0]{1,256})@""", _is_no_template),
        ("hooks.slack", r"(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<secret>[\w/]{8,}+)", None),
        ("/webhooks/", r"(?<=/)\d{5,25}/(?P<secret>[\w\-]{8,}+)", None),
        ("webhook.office.com/webhookb2/", r"(?P<secret>[\w\-@/]{8,}+)", None),
    )
)
_PEM_SIGN = "-----BEGIN "
_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_INSIDE = re.compile(r"(?:[^\-\0]++|-(?!----))*+")


def find_credentials(text: str) -> list[Span]:
    """Where credentials stand that their format gives away; spans in order."""
    spans = [*_find_pem(text), *_find_prefixed(text)]
    for literal, pattern, check in _RULES:
        if literal in text:
            group = "secret" if pattern.groupindex else 0
            spans += (m.span(group) for m in pattern.finditer(text) if check is None or check(m))
    spans.sort()
    return spans


def masked_url(url: str) -> str:
    """An address as logs and errors show it: without the login it may hold."""
    return _PASSWORD_PARAMETER.sub(r"\1****", _USERINFO.sub("****@", url))


def remove_spans(text: str, spans: Iterable[Span]) -> str:
    """The text with the marker in place of each span; where spans overlap, of their union."""
    pieces: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if start >= done:
            pieces += (text[done:start], MARKER)
        done = max(done, end)
    return "".join((*pieces, text[done:])) if pieces else text


def _find_prefixed(text: str) -> Iterator[Span]:
    for sign, pattern in _PREFIX_ENDS:
        if sign not in text:
            continue
        done = 0
        for found in pattern.finditer(text):
            end = found.end()
            if end < done or not text.endswith(_PREFIXES, max(0, end - _LONGEST_PREFIX), end):
                continue
            prefix = next(prefix for prefix in _PREFIXES if text.endswith(prefix, 0, end))
            if match := _PREFIXED.match(text, end - len(prefix)):
                done = match.end()
                if not (match[1] in _WORDY_PREFIXES and _WORDS.fullmatch(match[2])):
                    yield match.span()


def _find_pem(text: str) -> Iterator[Span]:
    if _PEM_SIGN not in text:
        return
    for begin in _PEM_BEGIN.finditer(text):
        inside = _PEM_INSIDE.match(text, begin.end())
        assert inside is not None
        if not _PEM_BODY.search(inside[0]):
            continue
        is_whole = text.startswith("-----END", inside.end())
        cut_off = _PEM_CUT_OFF.match(text, begin.end(), inside.end())
        assert cut_off is not None
        yield begin.end(), inside.end() if is_whole else cut_off.end()
