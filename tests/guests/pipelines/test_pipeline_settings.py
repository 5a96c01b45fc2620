"""Invalid settings of pipelines are reported before anything runs."""
import pytest

from ragbed.documents.errors import SettingsError, UserError
from ragbed.experiments.settings.file import read_settings


@pytest.mark.parametrize(("settings", "said"), [
    ({"kind": "http", "name": "web", "url": "http://user:word@host/"}, "must not contain a user, password or query"),
    ({"kind": "http", "name": "web", "url": "http://host/", "answer": "$["}, "is not a JSONPath"),
    ({"kind": "python", "name": "mine", "factory": "mine.py"}, "write FILE.py:NAME"),
    ({"kind": "python", "name": "mine", "factory": "absent.py:answer"}, "absent.py"),
    ({"kind": "python", "name": "mine", "factory": "mine.py:odd"}, "rename them to some of id, question"),
    ({"kind": "http", "name": "web", "url": "http://host/", "request": {"q": "{query}"}}, "{question} is missing"),
    ({"kind": "command", "name": "a\nb", "argv": ["true"]}, "one line"),
    ({"kind": "carrier_pigeon", "name": "web"}, "carrier_pigeon")])
def test_invalid_settings_are_one_line_errors(town, settings, said, monkeypatch):
    monkeypatch.chdir(town.folder)
    (town.folder / "mine.py").write_text("def odd(q): ...\n")
    with pytest.raises(UserError, match=said.replace("$[", r"\$\[")):
        read_settings(town.config("http://127.0.0.1:9", pipelines=[settings]))


def test_pipelines_need_distinct_names(town):
    pair = [{"kind": "command", "name": "a", "argv": [name]} for name in ("true", "false")]
    with pytest.raises(SettingsError, match="pipelines: two have the name a"):
        read_settings(town.config("http://127.0.0.1:9", pipelines=pair))
