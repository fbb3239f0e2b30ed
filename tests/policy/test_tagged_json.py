"""Redaction looks through an adapter's tags and never at their own names."""

import copy
from typing import Any

import pytest

from runmemory_core.policy.tagged_json import redact_tagged

MESSAGE: Any = {
    "$lg": "ext",
    "code": 5,
    "type": "langchain_core.messages.ai:AIMessage",
    "value": {"content": "hi", "additional_kwargs": {"api_key": "canary", "max_tokens": 5}},
    "method": "model_validate_json",
}


def test_a_secret_inside_an_extension_is_removed_and_the_tag_stays_whole():
    redacted = redact_tagged(copy.deepcopy(MESSAGE), name="messages")
    assert redacted.removed == ("/additional_kwargs/api_key",)
    wanted = copy.deepcopy(MESSAGE)
    wanted["value"]["additional_kwargs"]["api_key"] = "[removed]"
    assert redacted.value == wanted


@pytest.mark.parametrize("name", ["token", "password", "credentials", "messages", "code", "value"])
@pytest.mark.parametrize(
    "tag",
    [
        {"$lg": "ext", "code": 0, "type": "uuid:UUID", "value": "00000000000000000000000000000001"},
        {"$lg": "ext", "code": 99, "data": "AAEC"},
        {"$lg": "map", "items": [[1, 10], [2, 20]]},
        {"$lg": "b64", "data": "AAEC"},
        {"$lg": "int", "value": "9007199254740993"},
        {"$lg": "float", "value": "nan"},
        {"$lg": "json", "text": "{}"},
    ],
    ids=lambda tag: tag["$lg"],
)
def test_a_tag_stays_as_it_is_or_goes_whole_but_is_never_broken(name, tag):
    redacted = redact_tagged(copy.deepcopy(tag), name=name).value
    assert redacted in (tag, "[removed]")


def test_tags_inside_tags_are_opened_too():
    nested = {"$lg": "ext", "code": 7, "value": [copy.deepcopy(MESSAGE), {"password": "canary"}]}
    redacted = redact_tagged(nested, name="items")
    assert set(redacted.removed) == {"/0/additional_kwargs/api_key", "/1/password"}
    assert redacted.value["value"][0]["type"] == MESSAGE["type"]


@pytest.mark.parametrize("kind", [{"x": 1}, ["int"], 7, None])
def test_a_tag_of_no_known_kind_is_data(kind: Any):
    value = {"$lg": kind, "password": "canary"}
    assert redact_tagged(value).value == {"$lg": kind, "password": "[removed]"}


def test_what_is_no_number_under_a_numbers_tag_is_looked_through():
    value = {"$lg": "int", "value": {"password": "canary"}}
    assert redact_tagged(value).value == {"$lg": "int", "value": {"password": "[removed]"}}
