"""A company's documents with groups, the keys of its people, and a server with a rule; for tests of access."""
import json
from contextlib import contextmanager

import httpx2 as httpx
from patience import SECONDS
from serving import direct, served

from ragbed.experiments.guests.access.access import Access
from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.guests.serving.app import create_app
from ragbed.experiments.guests.serving.middleware import GateSettings
from ragbed.retrieval import build_index

ANN, BOB, EVE = "ann-key-0123456789", "bob-key-0123456789", "eve-key-0123456789"
LINES = [f"ann {ANN} groups=finance,staff", f"bob {BOB} groups=hr", f"eve {EVE} level=2"]
RULE = "public == true or groups in key.groups"
PAGES = {
    "budget.txt": "The budget of the falcon project is 4711 crowns.",
    "salaries.html": "<table><caption>Salaries falcon</caption><tr><th>name</th><th>pay</th></tr><tr><td>Marlowe</td>"
                     "<td>9977</td></tr></table>",
    "canteen.txt": "The canteen of the falcon project opens at noon.",
    "forgotten.txt": "The forgotten safe of the falcon project opens with 8812.",
    "broken.txt": "The broken lock of the falcon project opens with 3344.",
    "claimed.md": "---\ngroups: finance\npublic: true\n---\nThe claimed code of the falcon project is 5566.\n"}
FIELDS = {"budget.txt": {"groups": "finance, board"}, "salaries.html": {"groups": "hr"},
          "canteen.txt": {"public": True}, "broken.txt": {"groups": "hr,,finance"}}
SECRETS = {"budget.txt": "4711", "salaries.html": "9977", "canteen.txt": "noon", "forgotten.txt": "8812",
           "broken.txt": "3344", "claimed.md": "5566"}
SEES = {ANN: {"budget.txt", "canteen.txt"}, BOB: {"salaries.html", "canteen.txt"}, EVE: {"canteen.txt"}}


def build(folder, fields=None, **settings):
    """An index of the pages below a folder."""
    files = folder / "files"
    files.mkdir(exist_ok=True)
    for name, text in PAGES.items():
        (files / name).write_text(text)
    build_index([files], folder / "index", metadata=FIELDS if fields is None else fields, **settings)
    return folder / "index"


def repeat(body):
    """A model that repeats all that it sees."""
    return "\n".join(str(one["content"]) for one in body["messages"]).replace("<", "(") + " [1][2][3]"


@contextmanager
def guarded(index, model, folder, rule=RULE, keys=LINES, access=None, **changes):
    """A client of a server over an index, with a rule."""
    known = keys if isinstance(keys, Keys) else Keys(keys)
    described = [direct(index, f"{model.url}#m", **{"k": 10, **changes})]
    rules = access or Access([rule] if rule else [], known.claims)
    with served(described, folder, lambda serving: create_app(serving, GateSettings(known)), access=rules) as url, \
            httpx.Client(base_url=url, timeout=SECONDS) as client:
        yield client


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def events(response):
    lines = response.text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def call(client, key, tool, **arguments):
    """The text of a response of an MCP tool."""
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return client.post("/mcp", json=sent, headers={
        **bearer(key), "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}).text
