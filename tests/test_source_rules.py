"""What `ragbed check strategy` finds in a source without playing it."""
import pytest

from agents.conformance.child import broken_rules


@pytest.mark.parametrize(("line", "told"), [
    ("draw = random.random()", "draws by random.random; a recipe draws by task.rng() alone"),
    ("draw = numpy.random.random(3)", "draws by random.random; a recipe draws by task.rng() alone"),
    ("draw = random.choice", "draws by random.choice; a recipe draws by task.rng() alone"),
    ("draw = random.Random(3).random()", None),
    ("draw: random.Random = task.rng()", None),
    ("draw = task.rng().random()", None)])
def test_chance_is_what_a_recipe_draws_by_anything_but_a_seeded_generator(line, told):
    assert [what for _, what in broken_rules(f"import random\n{line}\n")] == ([told] if told else [])
