"""The matrix of a run: lists, `exclude`, `include`, and seeds."""
import itertools
import json

import pytest
import yaml
from each_case import each
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbed.documents import SettingsError
from ragbed.experiments import check_settings
from ragbed.experiments.cells import label_rows
from ragbed.experiments.settings.matrix import list_combinations

CREST = {"kind": "crest", "path": "x"}
ONE = {"name": "x", "benchmark": CREST, "models": "http://h/v1#m", "reasoning": "direct"}


def of(**fields):
    return check_settings({**ONE, **fields}, "x")


def named(**fields):
    return [(one.model, one.condition, one.reasoning) for one in list_combinations(of(**fields))]


def test_exclude_removes_what_matches_every_key():
    assert named(models=["a", "b"], conditions=["provided", "closed-book"], reasoning=["direct", "least_to_most"],
                 exclude=[{"conditions": "closed-book", "reasoning": "least_to_most"},
                          {"models": ["b"], "conditions": "provided"}]) == [
        ("a", "provided", "direct"), ("a", "provided", "least_to_most"), ("a", "closed-book", "direct"),
        ("b", "closed-book", "direct")]


def test_include_adds_combinations_last_with_the_runs_values_for_missing_keys():
    assert named(models=["a", "b"], exclude={"models": "b"},
                 include=[{"models": "c", "conditions": "gold"}, {"models": ["a", "b"], "conditions": "full"}]) == [
        ("a", "provided", "direct"), ("c", "gold", "direct"), ("a", "full", "direct"), ("b", "full", "direct")]
    assert [(one.reasoning, one.repeat) for one in list_combinations(of(
        reasoning=["direct", "chain_of_thought"], include={"reasoning": "direct", "repeats": 3}))] == [
        ("direct", 0), ("chain_of_thought", 0), ("direct", 1), ("direct", 2)]


@each(("fields", "says"), [
    ({"exclude": {"conditions": "full"}}, ["exclude {conditions: [full]}", "full is not a value of conditions",
                        "provided"]),
    ({"exclude": {"conditions": "guess"}}, ["exclude.0.conditions.0", "choose from: closed-book"]),
    ({"exclude": {"condtions": "provided"}}, ["unknown setting 'exclude.0.condtions'", "did you mean 'conditions'?"]),
    ({"exclude": {"repeats": 1}}, ["unknown setting 'exclude.0.repeats'"]),
    ({"exclude": {}}, ["exclude {} is empty"]),
    ({"exclude": {"conditions": []}}, ["exclude.0.conditions", "the list is empty"]),
    ({"exclude": [{"seed": 0}]}, ["exclude removes every combination"]),
    ({"conditions": ["provided", "full"], "exclude": [{"conditions": "full"}, {"condition": "full", "seed": 0}]},
     ["exclude {conditions: [full], seed: [0]} removes nothing, as earlier entries remove the same"]),
    ({"include": {"conditions": "provided"}}, ["include {conditions: [provided]} adds nothing"]),
    ({"include": {"retriever": "bm25"}}, ["unknown retriever bm25", "dense@5"]),
    ({"include": {"retriever": {"kind": "dense", "kk": 3}}}, ["unknown setting 'include.0.retriever.0.settings.kk'"]),
    ({"include": {"retriever": {"kind": "dense", "name": "dense@5", "k": 3}}}, ["another retriever has the name"]),
    ({"include": {"rules": "closed-book"}}, ["set conditions: closed-book"]),
    ({"exclude": {"benchmark": "mdbench", "seed": 0}}, ["the benchmark of this run is crest"]),
    ({"seed": -1}, ["seed.0: Input should be greater than or equal to 0"]),
    ({"seed": []}, ["seed: the list is empty"]), ({"seed": [1, 1]}, ["seed: duplicate value"]),
    ({"condition": "provided", "conditions": "full"}, ["condition and conditions are the same setting"]),
    ({"max_tokens": 3}, ["unknown setting 'max_tokens'", "or 'judge.max_tokens' or "]),
    ({"seed": True}, ["seed: expected a number, not true"]), ({"seed": [3, False]}, ["seed: expected a number"]),
    ({"repeats": True}, ["repeats: expected a number"]), ({"exclude": None}, ["exclude.0: the value is missing"]),
    ({"budget": {"dollars": True}}, ["budget.dollars: expected a number, not true"]),
    ({"benchmark": None}, ["benchmark: the value is missing"]),
    ({"models": [None]}, ["models.0: the value is missing"]),
    ({"benchmark": {"path": "x"}}, ["benchmark: `kind` is missing; write {kind: KIND}"]),
    ({"judge": {"kind": "x"}}, ["judge: unknown kind x; valid kinds: lexical, model"]),
    ({"seed": list(range(2000)), "repeats": 1000, "reasoning": ["direct", "chain_of_thought"]},
     ["4,000,000 combinations", "100,000", "seed (2000), repeats (1000), reasoning (2)"]),
])
def test_an_entry_without_effect_is_a_one_line_error(fields, says):
    with pytest.raises(SettingsError) as refused:
        of(**fields)
    assert [word for word in says if word not in str(refused.value)] == [], str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_list_can_be_given_by_its_column_name():
    singular = check_settings(
        {"name": "x", "benchmark": CREST, "model": ["a", "b"], "condition": "full", "perturbation": "shuffle",
         "format": "html", "exclude": {"model": "a"}}, "x")
    plural = check_settings(
        {"name": "x", "benchmark": CREST, "models": ["a", "b"], "conditions": "full", "perturbations": "shuffle",
         "formats": "html", "exclude": {"models": "a"}}, "x")
    assert singular == plural
    assert singular.to_yaml() == plural.to_yaml()


FIELDS = {"model": ["a", "b"], "condition": ["provided", "gold", "closed-book"],
          "perturbation": ["none", "shuffle"], "reasoning": ["direct", "chain_of_thought", "least_to_most"],
          "seed": [0, 1]}
lists = st.fixed_dictionaries({name: st.lists(st.sampled_from(values), min_size=1, unique=True)
                               for name, values in FIELDS.items()})
parts = st.fixed_dictionaries({}, optional={name: st.lists(st.sampled_from(values), min_size=1, unique=True)
                                            for name, values in FIELDS.items()}).filter(bool)


def product(given):
    return {tuple(zip(given, values, strict=True)) for values in itertools.product(*given.values())}


@settings(max_examples=60)
@given(lists, st.lists(parts, max_size=2), st.lists(parts, max_size=2))
def test_the_matrix_equals_a_plain_reference(base, exclude, include):
    wanted, sound = product(base), True
    for entry in exclude:
        sound &= all(set(values) <= set(base[name]) for name, values in entry.items())
        dropped = {one for one in wanted if all(dict(one)[name] in values for name, values in entry.items())}
        sound &= bool(dropped)
        wanted -= dropped
    for entry in include:
        added = product({**base, **entry}) - wanted
        sound &= bool(added)
        wanted |= added
    fields = {**base, "exclude": exclude, "include": include, "models": base["model"]}
    del fields["model"]
    if not sound or not wanted:
        with pytest.raises(SettingsError):
            of(**fields)
        return
    found = list_combinations(of(**fields))
    assert {tuple((name, getattr(one, name)) for name in base) for one in found} == wanted
    assert len(found) == len(wanted)


def test_settings_round_trip_through_yaml():
    chosen = of(seed=[1, 2], exclude={"seed": 2, "conditions": "provided"}, conditions=["provided", "full"],
                include={"retriever": ["dense@5", {"kind": "dense", "k": 3}], "conditions": "retrieved"})
    resolved = yaml.safe_load(chosen.to_yaml())
    assert resolved["seed"] == [1, 2]
    assert resolved["exclude"] == [{"conditions": ["provided"], "seed": [2]}]
    assert check_settings(resolved, "x") == chosen
    assert (yaml.safe_load(of().to_yaml())["seed"], yaml.safe_load(of().to_yaml())["exclude"]) == (0, [])
    assert check_settings(yaml.safe_load(of().to_yaml()), "x") == of()


def test_only_what_is_left_is_asked_and_only_its_models_are_opened(serve, town, ragbed):
    server, other = serve(town.reply), serve(town.reply)
    made = ragbed.json("run", town.config(
        server.url, models=[f"{server.url}#m", "gguf:/nowhere/at-all.gguf"], conditions=["provided", "closed-book"],
        reasoning=["direct", "plan_and_solve"],
        exclude=[{"models": "gguf:/nowhere/at-all.gguf"}, {"conditions": "closed-book", "reasoning": "plan_and_solve"}],
        include={"models": f"{other.url}#n", "conditions": "provided", "reasoning": "direct"}))
    assert [(cell["model"][-1], cell["condition"], cell["reasoning"], cell["n"]) for cell in made["cells"]] == [
        ("m", "provided", "direct", 6), ("m", "provided", "plan_and_solve", 6), ("m", "closed-book", "direct", 6),
        ("n", "provided", "direct", 6)]
    assert (len(server.requests), len(other.requests)) == (18, 6)
    assert not any("combinations" in note for note in made["notes"])
    assert ragbed("verify", town.run)[0] == 0
    assert ragbed("run", town.run.parent.parent / "town.yaml", "--json")[0] == 0
    assert (len(server.requests), len(other.requests)) == (18, 6)


def evidence(server):
    """The documents of every prompt, by the question's number."""
    texts = [body["messages"][-1]["content"] for body, _ in server.requests]
    return sorted(text.partition("Rules")[0] for text in texts)


@pytest.mark.slow
def test_each_seed_of_a_random_perturbation_is_a_cell(serve, town, ragbed):
    town.write([town.row(number) for number in range(6)])
    many = serve(town.reply)
    made = ragbed.json("run", town.config(many.url, perturbations=["none", "drop_gold", "shuffle"], seed=[1, 2]))
    assert [(cell["perturbation"], cell["seed"]) for cell in made["cells"]] == [
        (None, None), ("drop_gold", None), ("shuffle", 1), ("shuffle", 2)]
    assert label_rows(made["cells"]) == ["no perturbation", "drop_gold", "shuffle · seed 1", "shuffle · seed 2"]
    assert any(note.startswith("6 combinations of the settings make 4 cells") for note in made["notes"])
    sent = []
    for seed in (1, 2):
        one = serve(town.reply)
        ragbed.json("run", town.config(one.url, perturbations="shuffle", seed=seed, name=f"seed-{seed}"))
        sent += evidence(one)
    plain = serve(town.reply)
    ragbed.json("run", town.config(plain.url, perturbations=["none", "drop_gold"], name="plain"))
    assert evidence(many) == sorted(set(sent) | set(evidence(plain)))  # what two seeds show alike is asked once
    assert len(set(sent)) > 6


def test_every_command_reads_a_run_of_several_seeds(serve, town, ragbed):
    server = serve(town.reply)
    ragbed.json("run", town.config(server.url, perturbations=["none", "shuffle"], seed=[1, 2]))
    ragbed.json("run", town.config(server.url, perturbations=["none", "shuffle"], seed=3, name="other"))
    other = town.run.parent / "other"
    for command in (["verify", town.run], ["report", town.run], ["rescore", town.run], ["show", town.run, "#2"],
                    ["show", town.run, "#2", "--cell", "shuffle · seed 2"], ["compare", town.run],
                    ["compare", other, town.run]):
        status, _, err = ragbed(*command)
        assert status == 0, (command, err)


def test_seeds_without_effect_are_noted(serve, town, ragbed):
    server = serve(town.reply)
    made = ragbed.json("run", town.config(server.url, seed=[1, 2, 3]))
    assert [cell["seed"] for cell in made["cells"]] == [None]
    assert any("The seeds have no effect" in note for note in made["notes"])


LOTS = '''
from ragbed.strategies.types import Draft, Generate, Message


def recipe(task):
    """Draws what it asks: a strategy of a user's."""
    yield from task.gather(task.question)
    reply = yield Generate((Message("user", (f"{task.rng().random()}",)),), "answer")
    return Draft.from_reply(reply)
'''


def test_seeds_of_a_custom_strategy_stay_separate_cells(serve, town, ragbed):
    own = town.folder / "lots.py"
    own.write_text(LOTS)
    server = serve(town.reply)
    made = ragbed.json("run", town.config(server.url, reasoning=["direct", f"{own}:recipe"], seed=[1, 2]))
    assert [(cell["reasoning"], cell["seed"]) for cell in made["cells"]] == [
        ("direct", None), ("lots", 1), ("lots", 2)]
    assert len({body["messages"][-1]["content"] for body, _ in server.requests}) == 18
    assert any("Each seed is a separate cell under lots" in note for note in made["notes"])


def test_the_schema_describes_every_setting(ragbed):
    schema = json.loads(ragbed("schema")[1])
    keys = schema["properties"]
    assert {"exclude", "include", "seed", "benchmark", "model", "condition"} <= set(keys)
    assert [one.get("type") for one in keys["seed"]["anyOf"]] == ["integer", "array"]
    assert keys["benchmark"]["anyOf"][1]["type"] == "array"
    assert set(schema["$defs"]["Excluded"]["properties"]) >= {"benchmark", "models", "model", "retriever", "seed"}
    assert "never averaged" in keys["benchmark"]["description"]
    described = {name: [key for key, value in part.get("properties", {}).items() if "description" not in value]
                 for name, part in {"settings": schema, **schema["$defs"]}.items()}
    assert {name: missing for name, missing in described.items() if missing} == {}


def test_a_plan_counts_the_pairs_that_the_run_will_compare(serve, town, ragbed):
    server = serve(town.reply)
    config = town.config(server.url, conditions=["provided", "closed-book"], reasoning=["direct", "plan_and_solve"],
                         perturbations=["none", "shuffle"], seed=[1, 2])
    plan = json.loads(ragbed("run", config, "--dry-run", "--json")[1])
    made = ragbed.json("run", config)
    summary = json.loads((town.run / "summary.json").read_text())
    assert len(made["cells"]) == len(plan["cells"]) == 8  # per strategy: plain, two seeds of shuffle, closed-book
    assert plan["detectable"]["pairs"] == len(summary["comparisons"]["pairs"])
