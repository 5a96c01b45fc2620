"""`ragbed leaks`: a rule before the search has no leak; one after it, none at all, and each broken part are caught."""
import asyncio
import hashlib
import json
import re
from dataclasses import replace

import pytest
from groups import RULE, build

from ragbed.agents.assistant import Assistant
from ragbed.agents.search import Searcher
from ragbed.documents import SettingsError
from ragbed.experiments.guests.access.access import Access, may_reach
from ragbed.experiments.guests.access.leaks import ROUTES, find_leaks
from ragbed.experiments.guests.operations import alternatives
from ragbed.retrieval.pool import RetrieverChoice, WholeSearch

PEOPLE = f"allow: {RULE}\nprincipals:\n  ann: {{groups: [finance, staff]}}\n  bob: {{groups: hr}}\n  eve:\n"
BM25 = {"retriever": {"kind": "bm25"}, "reasoning": "direct", "k": 3}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("company"))


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    path = tmp_path_factory.mktemp("people") / "p.yaml"
    path.write_text(PEOPLE)
    return path


def leaks(index, people, make=Access, routes=ROUTES, **options):
    options = {"each": 1, "make": make, "routes": routes, **options}
    report = asyncio.run(find_leaks(index, people, BM25, **options))
    assert not [one for one in report.probes if one.failure]
    return report, [one for one in report.probes if one.stages and not one.allowed]


def hashes(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_rule_before_the_search_has_no_leak_and_costs_no_recall(index, people):
    before = hashes(index)
    report, found = leaks(index, people, each=2)
    assert found == []
    assert len([one for one in report.probes if not one.allowed]) > 500
    assert {"asked", "cached", "stolen", "revoked"} == {one.phase for one in report.probes}
    assert all("shown" in one.stages for one in report.probes if one.allowed)  # those who may read it get it
    assert report.recall == {"ann": 1.0, "bob": 1.0, "eve": 1.0}
    assert hashes(index) == before


@pytest.mark.slow
def test_without_a_rule_every_route_leaks(index, people):
    report, found = leaks(index, people, unprotected=True)
    asked = [one for one in report.probes if one.phase == "asked" and not one.allowed]
    assert {one.route for one in found if one.phase == "asked"} == {*ROUTES} - {"picture"}  # no canary is a PDF
    assert sum(bool(one.stages) for one in asked) >= 0.9 * len(asked)
    assert {"history", "thread"} <= {one.route for one in found if one.phase == "revoked"}
    assert not [one for one in found if one.phase == "stolen" and one.route in ("history", "thread", "response")]
    assert all(share < 1 for share in report.recall.values())


class AfterSearch(Access):
    """A deliberately wrong rule: it removes from the hits what a key may not read, so too few are left."""

    def narrow(self, configuration, owner):
        right, whole = super().narrow(configuration, owner), configuration.assistant
        view = right.assistant.index

        class Filtered(WholeSearch):
            def search(self, queries, k):
                return [[hit for hit in hits if may_reach(view, hit.chunk.document)]
                        for hits in super().search(queries, k)]

        how = RetrieverChoice(whole.settings.retriever, (), lambda: whole.deps)
        assistant = Assistant(whole.settings, view, whole.client, None, whole.deps, whole.strategies,
                              Searcher(Filtered(whole.index, how), whole.settings.k), whole.tools)
        return replace(right, assistant=assistant,
                       threads=assistant.with_checkpointer(configuration.threads.graph.checkpointer))


@pytest.mark.slow
def test_a_rule_after_the_search_is_caught_though_it_shows_nothing(index, people):
    report, found = leaks(index, people, AfterSearch)
    assert {stage for one in found for stage in one.stages} == {"found"}
    assert {"search", "ask", "chat", "page", "responses"} <= {one.route for one in found}
    assert not {"list", "grep", "open", "document"} & {one.route for one in found}
    assert min(report.recall.values()) < 0.9


class ForgetsDocuments(Access):
    """Narrows searches, and not the view of documents."""

    def view(self, index, owner):
        return index if not getattr(self, "narrowing", False) else super().view(index, owner)

    def narrow(self, configuration, owner):
        self.narrowing = True
        try:
            return super().narrow(configuration, owner)
        finally:
            self.narrowing = False


class ForgetsHistory(Access):
    """Shows and continues conversations whatever they were based on."""

    def may_see(self, basis, indexes, owner):
        return True


class SharesViews(Access):
    """Gives all keys what the first one may read."""

    first = None

    def _read_claims(self, owner):
        self.first = self.first or super()._read_claims(owner)
        return self.first


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "routes"), [
    (ForgetsDocuments, {"document", "part of it"}), (ForgetsHistory, {"history", "thread", "response", "item"}),
    (SharesViews, {"search", "chat", "page", "grep", "document"})])
def test_each_broken_part_is_caught_where_it_is(index, people, broken, routes):
    _, found = leaks(index, people, broken)
    assert routes <= {one.route for one in found}
    if broken is ForgetsDocuments:
        assert {one.route for one in found if one.phase == "asked"} == routes


@pytest.mark.slow
def test_even_a_cache_of_answers_that_forgets_the_rule_shows_nothing(index, people, monkeypatch):
    """The answer of another key cites documents that the view does not have, so it cannot be written."""
    monkeypatch.setattr(alternatives, "cache_key", lambda turn, earlier, deletion: turn.question)
    report, found = leaks(index, people, routes=("side by side",))
    assert found == []
    assert {one.phase for one in report.probes if one.allowed and "said" in one.stages} == {"asked", "cached"}


@pytest.mark.slow
def test_the_command_prints_a_table_and_fails_on_a_leak(index, people, ragbed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    options = ("leaks", index, "--principals", people, "--retriever", "bm25", "--each", "1", "--route", "chat",
               "--route", "list")
    status, clean, _ = ragbed(*options)
    assert (status, "leaked: 0 of" in clean) == (0, True)
    status, leaky, _ = ragbed(*options, "--no-rule")
    assert status == 1
    assert re.search(r"asked +chat +20 +20 +20 +20 +20 +20 +-", leaky)
    assert max(map(len, leaky.splitlines())) <= 80
    told = json.loads(ragbed(*options, "--no-rule", "--json")[1])
    assert told["leaked"] == len(told["leaks"]) > 0
    assert told["low"] < told["leaked"] / told["forbidden"] < told["high"]


def test_own_documents_can_be_canaries(index, people, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(PEOPLE + "canaries:\n  - {source: budget.txt, secret: '4711', ask: 'How large is the budget?'}\n")
    report, found = leaks(index, path, routes=("search", "chat", "document"))
    assert found == []
    assert {one.source for one in report.probes} == {"budget.txt"}
    assert {one.owner for one in report.probes if one.allowed and "said" in one.stages} == {"ann"}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "said"), [
    ("principals: {ann: {}}", "expected `allow`"), (f"allow: {RULE}\nprincipals: []", "expected `allow`"),
    (f"{PEOPLE}more: 1", "'more' is unknown"), (f"{PEOPLE}canaries:\n  - {{source: x.txt}}", "expected `source`"),
    (PEOPLE + "canaries:\n  - {source: budget.txt, secret: nowhere, ask: x}", "does not contain 'nowhere'"),
    (PEOPLE.replace("groups: hr", "groups: 'a,,b'"), "expected claims")])
def test_a_malformed_file_of_principals_is_refused_in_one_line(index, tmp_path, text, said):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=said) as error:
        asyncio.run(find_leaks(index, path, BM25))
    assert "\n" not in str(error.value)
