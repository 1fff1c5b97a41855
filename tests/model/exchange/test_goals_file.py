"""Goals in files of their own, and the published schemas."""

import json
from pathlib import Path

import pytest

from model.errors import ConfigError
from model.exchange.goals_file import read_goals
from model.exchange.json_schemas import DIALECT, FILES, schema_of
from model.goals.goals import Budgets, Goals, ObjectiveKind
from model.snapshot.snapshot import Count, Resource, StorageKind
from tests.support.paths import ROOT

SCHEMAS = ROOT / "docs" / "schemas"

TOML = """
objective = "band"
excluded_topics = ["audit.*"]

[[balance]]
resource = "net_in"
floor = 1.0

[[balance]]
resource = "topic_replicas"
tolerance = 0.2

[cooldown.shared]
rest_s = 5.0
return_window_s = 6.0
"""


def written(folder: Path, text: str, name: str = "g.toml") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_goals_are_read_from_toml(tmp_path: Path) -> None:
    result = read_goals(written(tmp_path, TOML))
    assert result.objective is ObjectiveKind.BAND
    measures = [g.resource for g in result.balance]
    assert measures == [Resource.NET_IN, Count.TOPIC_REPLICAS]
    assert result.cooldown[StorageKind.SHARED].rest_s == 5.0
    assert result.excludes("audit-2")


def test_omitted_goals_keep_their_defaults(tmp_path: Path) -> None:
    assert read_goals(written(tmp_path, "")) == Goals()


def test_the_goals_of_a_plan_file_can_be_reused(tmp_path: Path) -> None:
    goals = read_goals(written(tmp_path, TOML))
    again = written(tmp_path, goals.model_dump_json(), "g.json")
    assert read_goals(again) == goals


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "\nobjectiv = 1\n",
            "line 2: unknown key 'objectiv'; did you mean 'obj",
        ),
        ('[[balance]]\nresource = "cpu"\ntol = 1\n', "line 3: unknown key 'balance.0."),
        (
            "[budgets]\nreplica_movs = 1\n",
            "unknown key 'budgets.replica_movs'; did you",
        ),
        ("[cooldown.shared]\nrests = 1\n", "line 2: .*'rest_s'"),
        ("[zzz]\n", r"line 1: unknown key 'zzz'; known are balance, budgets"),
        ("move_price = 0\n", "line 1: move_price: Input should be greater"),
        ("move_price = nan\n", "move_price is nan; give a finite number"),
        ("move_price = 1979-05-27\n", "line 1: move_price"),
        ('excluded_topics = ["("]\n', r"'\(' is not a valid regular expression"),
        ("\n[budgets]\nbytes = -1\n", "line 3: budgets.bytes: Input should be greater"),
        (
            TOML + "[[balance]]\nresource = 'cpu'\nfloor = '1 furlong'\n",
            "line 18: balance.2.floor: '1 furlong' is not a rate",
        ),
        (
            "[budgets]\nreplica_movs = 1\nbites = 2\n",
            "line 2: .*'replica_moves'.*line 3: .*'bytes'",
        ),
        ("a = \n", "is not valid TOML: .*line 1"),
        (
            "[cooldown.replicatd]\nrest_s = 1\n",
            r"toml, line 1: cooldown\.replicatd: Input should be 'replicated', "
            r"'tiered' or 'shared'; did you mean 'replicated'\?$",
        ),
        (
            '[[balance]]\nresource = "net_inn"\n',
            r"toml, line 2: balance\.0\.resource: Input should be 'net_in', .*"
            r" or 'topic_leaders'; did you mean 'net_in'\?$",
        ),
        ("rack_rule = 'xyz'\n", "rack_rule: .*'spread', 'even' or 'off'$"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_one(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        read_goals(written(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_json_is_named_with_its_line_too(tmp_path: Path) -> None:
    path = written(tmp_path, '{\n "budgets": {\n  "replica_mvoes": 1}}', "g.json")
    with pytest.raises(
        ConfigError, match=r"g\.json, line 3: .*did you mean 'replica_moves'"
    ):
        read_goals(path)


def test_budgets_may_have_their_old_names(tmp_path: Path) -> None:
    old = written(tmp_path, "[budgets]\nmoves = 3\nmoves_in_per_broker = 1\n", "o.toml")
    assert read_goals(old).budgets == Budgets(
        replica_moves=3, replica_moves_in_per_broker=1
    )
    both = written(tmp_path, "[budgets]\nmoves = 3\nreplica_moves = 4\n", "b.toml")
    with pytest.raises(ConfigError, match="moves is the old name of replica_moves"):
        read_goals(both)


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_published_schema_is_that_of_the_types(name: str) -> None:
    """Written anew by `plimsoll schema NAME > docs/schemas/NAME.json`."""
    published = json.loads((SCHEMAS / f"{name}.json").read_text())
    assert published == schema_of(name)
    assert published["$schema"] == DIALECT


def test_every_published_schema_has_its_type() -> None:
    files = {p.stem for p in SCHEMAS.glob("*.json") if not p.stem.endswith("-output")}
    assert files == FILES.keys()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.toml", "move_price = 1.0\n[budgets]\nmoves = -1\n"),
        ("g.json", '{"move_price": 1,\n"budgets": {\n"moves": -1}}'),
    ],
)
def test_a_fault_under_an_old_name_has_that_name_and_its_own_line(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=r"line 3: budgets\.moves: Input should be"):
        read_goals(tmp_path / name)


def test_an_unknown_schema_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no schema 'plans'; did you mean 'plan'"):
        schema_of("plans")


def test_fields_carry_their_docstrings_into_the_schema() -> None:
    plan = schema_of("plan")
    bound = plan["properties"]["bound"]["description"]
    assert bound == "No allowed plan has an objective below this."
    gain = plan["$defs"]["Move"]["properties"]["gain"]["description"]
    assert gain == "What F would rise by without this move, others kept."
