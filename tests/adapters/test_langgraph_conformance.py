"""The suite LangGraph publishes for checkpointers, all eight capabilities, on every transport."""

import asyncio

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import CapabilityReport

from runmemory_langgraph import RunMemorySaver

BASE = {"put", "put_writes", "get_tuple", "list", "delete_thread"}
BASE_TESTS = 58
ALL_TESTS = 81


def report_on(make_saver) -> CapabilityReport:
    @checkpointer_test(name="RunMemorySaver")
    async def registered():
        with make_saver() as saver:
            yield saver

    return asyncio.run(validate(registered))


def failures(report: CapabilityReport) -> list[str]:
    return [f"{name}: {text}" for name, result in report.results.items() for text in result.failures]


def test_the_published_suite_passes_whole(saver_maker):
    report = report_on(saver_maker)
    assert failures(report) == []
    passed = {name: result.tests_passed for name, result in report.results.items()}
    assert sum(passed[name] for name in BASE) == BASE_TESTS
    assert sum(passed.values()) == ALL_TESTS


def test_the_suite_notices_a_saver_that_forgets_pending_writes(saver_maker):
    class Forgetful(RunMemorySaver):
        def put_writes(self, config, writes, task_id, task_path=""):
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunMemorySaver, "put_writes", Forgetful.put_writes)
        assert failures(report_on(saver_maker))
