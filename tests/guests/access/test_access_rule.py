"""Rules: what they allow, and which are refused."""
import pytest
from each_case import each

from ragbed.documents import SettingsError
from ragbed.experiments.guests.access.access_rule import AccessRule
from ragbed.experiments.guests.access.key_claims import read_claims
from ragbed.experiments.guests.serving.api_keys import Keys

ANN = read_claims("ann", {"groups": ["finance", "Domain Users"], "clearance": ["3"]}, "keys")


@each(("rule", "fields", "allowed"), [
    ("groups in key.groups", {"groups": "finance"}, True),
    ("groups in key.groups", {"groups": "hr, finance"}, True),
    ("groups in key.groups", {"groups": "Domain Users"}, True),
    ("groups in key.groups", {"groups": "Finance"}, False),  # names of groups are exact
    ("groups in key.groups", {"groups": "finance-private"}, False),
    ("groups in key.groups", {"groups": "fin*"}, False),
    ("groups in key.groups", {"groups": "finance,,hr"}, False),  # malformed
    ("groups in key.groups", {"groups": "finance\u200b"}, False),
    ("groups in key.groups", {"groups": True}, False),
    ("groups in key.groups", {"groups": ""}, False),
    ("groups in key.groups", {}, False),
    ("groups in key.missing", {"groups": "finance"}, False),
    ("public == true or groups in key.groups", {"public": True}, True),
    ("public == true or groups in key.groups", {"public": True, "groups": ","}, False),
    ("public == true or groups in key.groups", {"public": False}, False),
    ("owner == key.name", {"owner": "ann"}, True),
    ("owner == key.name", {"owner": "bob"}, False),
    ("owner = key.name and (public = true or groups in key.groups)", {"owner": "ann", "groups": "finance"}, True),
    ("level <= key.clearance", {"level": 3}, True),
    ("level <= key.clearance", {"level": 4}, False),
    ("level <= key.clearance", {"level": "low"}, False),
    ("level <= key.clearance", {}, False),
    ("tenant in key.tenants or key.name == ann", {}, True),
    ("key.name == an", {}, False),
    ("source = reports/*", {"source": "reports/a.txt"}, True),
    ("source = reports/*", {"source": "secret/b, reports/a.txt"}, False),  # a path is one value
    ('groups = "key.groups"', {"groups": "key.groups"}, True),  # quoted text is no claim
    ('title2 = "x in key.groups"', {"title2": "x in key.groups"}, True),
])
def test_a_rule_allows_only_what_it_says(rule, fields, allowed):
    assert AccessRule.parse(rule).allows(fields, ANN) is allowed


@each(("rule", "said"), [
    ("groups != key.groups", "no negation"), ("groups not in key.groups", "no negation"),
    ("groups not in (a, b)", "no negation"), ("owner = none", "no negation"), ("groups !~ x", "no negation"),
    ("groups in key.", "expected a condition"), ("groups = KEY.groups", "not a claim"),
    ("groups = key.gro*ups", "not a claim"), ("groups ~ key.groups", "a part of a value"),
    ("key.groups = key.name", "compare a claim"), ("key.groups = a*", "compare a claim"),
    ("title = x", "state their own title"), ("page > 2", "state their own page"),
    ("__import__('os').system('x')", "expected a condition"), ("", "expected a condition"), ("a or", "expected"),
    ("(" * 40 + "a = b" + ")" * 40, "levels of parentheses")])
def test_a_rule_that_cannot_be_meant_is_refused_in_one_line(rule, said):
    with pytest.raises(SettingsError, match=f"allow: .*{said}") as error:
        AccessRule.parse(rule)
    assert "\n" not in str(error.value)


def test_keys_have_claims(tmp_path):
    hashed = f"sha256:{'0' * 64}"
    keys = Keys(["ann 0123456789abcdef groups=finance,hr level=3", f"bob {hashed} groups=hr",
                 '{"name": "eve", "key": "fedcba9876543210", "groups": ["Domain Users", "hr"], "level": 2}'])
    assert keys.claims("ann") == {"name": {"ann"}, "groups": {"finance", "hr"}, "level": {"3"}}
    assert keys.claims("bob") == {"name": {"bob"}, "groups": {"hr"}}
    assert keys.claims("eve") == {"name": {"eve"}, "groups": {"Domain Users", "hr"}, "level": {"2"}}
    assert keys.claims("nobody") == {}
    environment = "ann 0123456789abcdef groups=a,b level=3,bob fedcba9876543210== ,eve fedcba98765432100 groups=c"
    several = Keys.read(None, environment)
    assert [sorted(several.claims(one).get("groups", ())) for one in several.owners] == [["a", "b"], [], ["c"]]


@each("claims", ["groups", "groups=", "groups=a,,b", "groups=a groups=b,", "name=root", "1x=a",
                 "groups=*", "gro.ups=a", "groups=a\u200b"])
def test_malformed_claims_are_refused_with_their_line(claims):
    with pytest.raises(SettingsError, match="keys, line 1: expected claims"):
        Keys([f"ann 0123456789abcdef {claims}"])
