"""The house rules: which room may import which, what stays light, what is banned."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.source import nodes, tree

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "graphveil"
#: Rooms that every other room may import, but for the device.
GROUND = {"files", "runtime"}
#: Entries that a room may have: what a reader takes in at one look.
ENTRIES = 20
CORE = {
    # A program of its own: it runs where nothing else of ours is.
    "device": set(),
    "privacy": set(),
    # People are told apart by one form of their ids, which has to stand where a device runs alone.
    "graphs": {"device", "engine", "privacy"},
    "hierarchy": {"graphs", "privacy"},
    "mechanisms": {"engine", "privacy"},
    "engine": {"privacy"},
    "aggregation": {"engine", "graphs", "mechanisms", "privacy"},
    "models": {"aggregation"},
    "training": {"aggregation", "mechanisms", "models", "privacy"},
    "methods": {
        "device",
        "privacy",
        "graphs",
        "hierarchy",
        "mechanisms",
        "engine",
        "aggregation",
        "models",
        "training",
    },
    "federation": {
        "device",
        "privacy",
        "graphs",
        "hierarchy",
        "mechanisms",
        "engine",
        "aggregation",
        "models",
        "training",
        "methods",
    },
}
CORE["attacks"] = CORE["audit"] = {*CORE["federation"], "federation"}
EDGES = {
    "collection": {*CORE},
    "reports": {*CORE, "reports"},
    "reproduction": {*CORE, "reports"},
    "studio": {*CORE, "collection", "reports", "reproduction"},
    "cli": {*CORE, "collection", "reports", "reproduction", "studio", "cli"},
}
OUTSIDE = {"typer", "rich", "fastapi", "socket", "jinja2", "matplotlib"}
#: The one file of a core room that is about sockets.
DOOR = {"federation/transport/admission.py": {"socket"}}


@cache
def imports(file: Path) -> set[str]:
    """Every module a file imports, relative imports resolved."""
    modules: set[str] = set()
    for node in nodes(file):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            modules.add(node.module or "")
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
    return modules


def rooms(file: Path) -> set[str]:
    """The rooms a file imports from."""
    names = {name.split(".")[1] for name in imports(file) if name.startswith("graphveil.")}
    return {name for name in names if (SOURCE / name).is_dir()}


def files(room: str) -> list[Path]:
    return sorted((SOURCE / room).rglob("*.py"))


@pytest.mark.parametrize("room", [*CORE, *EDGES])
def test_rooms_import_only_what_comes_before_them(room: str) -> None:
    allowed = {**CORE, **EDGES}[room] | {room} | (GROUND if room != "device" else set())
    for file in files(room):
        assert rooms(file) <= allowed, f"{file.relative_to(SOURCE)} imports {rooms(file) - allowed}"


def module_of(file: Path) -> str:
    """The name under which a file of ours is imported."""
    return ".".join(("graphveil", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


def imported_modules(file: Path, modules: set[str]) -> set[str]:
    """Our modules that a file imports: at its top, inside functions or for the type checker alone."""
    imported: set[str] = set()
    pending: list[ast.AST] = [tree(file)]
    while pending:
        node = pending.pop()
        # A room names there what it loads late: its files come first.
        if file.name == "__init__.py" and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            paths = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= (paths & modules) or {node.module or ""}
        pending += ast.iter_child_nodes(node)
    return imported & modules - {module_of(file)}


def circle_in(imports_of: dict[str, set[str]]) -> list[str]:
    """The modules of circles, and those between two circles; empty where an order without a way back exists."""
    left = {name: set(targets) for name, targets in imports_of.items()}
    while True:
        wanted = set().union(*left.values())
        ends = {name for name, targets in left.items() if not targets or name not in wanted}
        if not ends:
            return sorted(left)
        left = {name: targets - ends for name, targets in left.items() if name not in ends}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Neither inside functions nor for types, where a circle hides from Python but not from a reader."""
    modules = {module_of(file): file for file in SOURCE.rglob("*.py")}
    assert circle_in({name: imported_modules(file, set(modules)) for name, file in modules.items()}) == []


def test_a_circle_is_found() -> None:
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]


def test_every_room_stands_in_the_table() -> None:
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {*CORE, *EDGES, *GROUND}


def test_the_ground_imports_no_room_above_it() -> None:
    for file in [file for room in GROUND for file in files(room)]:
        assert rooms(file) <= GROUND, f"{file.relative_to(SOURCE)} imports {rooms(file) - GROUND}"


def test_rooms_stay_small_enough_to_see() -> None:
    for room in [SOURCE, *(path for path in SOURCE.rglob("*") if path.is_dir() and (path / "__init__.py").exists())]:
        # Of the house itself, its rooms: the one file beside them is what they all raise.
        files_too = room != SOURCE
        entries = {path.stem for path in room.iterdir() if path.is_dir() or (files_too and path.suffix == ".py")}
        entries = {name for name in entries if not name.startswith("__")}
        assert len(entries) <= ENTRIES, f"{room.relative_to(SOURCE)} has {len(entries)} entries"


@pytest.mark.parametrize("room", CORE)
def test_core_rooms_know_no_terminal_socket_or_page(room: str) -> None:
    for file in files(room):
        outside = {name.split(".")[0] for name in imports(file)} & OUTSIDE
        outside -= DOOR.get(str(file.relative_to(SOURCE)), set())
        assert not outside, f"{file.relative_to(SOURCE)} imports {outside}"


def test_nothing_is_unpickled() -> None:
    # The published Planetoid files are pickles: opened only if the very bytes have the published SHA-256.
    pinned = SOURCE / "graphs" / "named" / "planetoid.py"
    assert '_check_bytes(folder, b"".join(contents)' in pinned.read_text()
    for file in set(SOURCE.rglob("*.py")) - {pinned}:
        names = {name.split(".")[0] for name in imports(file)}
        assert not names & {"pickle", "cloudpickle", "dill", "joblib"}, file
        assert "torch.load" not in file.read_text(), file


def test_import_is_light_and_quick() -> None:
    script = (
        "import time; start = time.process_time(); import graphveil, sys; "
        "seconds = time.process_time() - start; "
        "heavy = {'torch', 'torch_geometric', 'fastapi', 'plotly', 'matplotlib', 'numba'} & set(sys.modules); "
        "print(seconds < 1 and not heavy, seconds, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("True"), done.stdout


def test_public_names_are_what_can_be_imported() -> None:
    import graphveil

    constants_first = sorted(graphveil.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert graphveil.__all__ == constants_first
    for name in graphveil.__all__:
        assert getattr(graphveil, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        graphveil.nothing  # noqa: B018


@pytest.mark.parametrize("room", list(CORE))
def test_rooms_export_sorted_lists_that_exist(room: str) -> None:
    module = __import__(f"graphveil.{room}", fromlist=["__all__"])
    constants_first = sorted(module.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert module.__all__ in (sorted(module.__all__), constants_first)
    for name in module.__all__:
        assert hasattr(module, name), name


#: Every function outside graphs/ that touches a graph's raw features or labels, and what for.
RAW_READERS = {
    "methods/advise/rehearsal.py:facts_of": "who has a label, and labels where they are declared public",
    "methods/advise/rehearsal.py:_similar": "who has a label, and features and labels that are declared public",
    "methods/base/people/released.py:require_labels": "the number of dimensions of the labels",
    "methods/base/people/released.py:randomize_people": "the collection itself",
    "methods/base/people/released.py:ask_question": "the collection itself",
    "methods/local/lpgnn.py:LPGNN.probabilities": "features declared public, of a new graph",
    "methods/base/people/asking.py:randomize_features": "the feature reports of people to predict, after they paid",
    "methods/links/collection.py:subgraph": "the part of a graph that reports, after it paid",
    "methods/base/network/objectives.py:true_score": "true labels, to measure accuracy in a simulation",
    "methods/curator/stages/training.py:read_people": "features and labels, which the curator knows",
    "methods/curator/stages/training.py:read_features": "features, which the curator knows",
    "methods/runs/search.py:score_of": "validation labels: public, or counted behind noise that is paid for",
    "methods/runs/experiment.py:_result": "the number of dimensions of the labels",
    "methods/release/heterorr.py:HeteroRR._read": "the release itself",
    "methods/release/public_part.py:public_part_of": "labels, which are published as they are",
    "methods/release/controls.py:_with_truth": "true labels, to measure accuracy in a simulation",
    "methods/local/controls.py:hits": "true test labels, to measure accuracy in a simulation",
    "methods/release/scores.py:public_part": "features and labels of the nodes that are declared public",
    "methods/release/extractor.py:embedded": "features, which become each user's own embedding",
    "collection/simulation/played.py:_require_fit": "the number of dimensions of the labels",
    "collection/simulation/played.py:values_of": "what simulated devices answer with",
    "federation/party.py:holding_of": "a holder's own features and labels, in its own process",
    "federation/simulation.py:vertical_partition": "features, dealt out to simulated holders",
    "federation/simulation.py:partition_graph": "labels, given to the simulated label holder",
    "methods/base/cost.py:_stored": "the layout of features, and of public ones the number stored",
    "attacks/attribute_inference.py:_truth": "true features, to measure an attack in a simulation",
    "attacks/feature_reconstruction.py:_people": "true features and labels, to measure an attack in a simulation",
    "attacks/feature_reconstruction.py:_notes": "the number of dimensions of the labels",
    "attacks/feature_reconstruction.py:_with_samples": "the number of dimensions of the labels",
    "attacks/membership_inference.py:confidence": "the label of a node asked for, which the adversary knows",
    "attacks/service.py:deployed": "the features that an adversary hands in",
    "attacks/service.py:labels_alone": "true labels, for the baseline of an attack in a simulation",
    "attacks/service.py:with_features": "the features that an adversary hands in",
    "attacks/service.py:with_features_of_others": "features dealt out anew, for the control of a simulation",
}


def raw_readers(file: Path) -> set[str]:
    """The functions of a file that read `graph.x` or `graph.y`."""
    readers: set[str] = set()

    def visit(node: ast.AST, inside: str) -> None:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            inside = f"{inside}.{node.name}".lstrip(".")
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("x", "y")
            and isinstance(node.value, ast.Name)
            and node.value.id == "graph"
        ):
            readers.add(f"{file.relative_to(SOURCE)}:{inside}")
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree(file), "")
    return readers


def test_raw_data_is_read_in_named_places_only() -> None:
    """Item 6 of the reviewer's checklist, and the first rule of the house: a new reader must be named here."""
    rooms_read = {*CORE, "collection"} - {"graphs"}
    readers = {name for room in rooms_read for file in files(room) for name in raw_readers(file)}
    assert readers == set(RAW_READERS)


def test_no_statistic_of_private_values_is_taken_outside_the_mechanisms() -> None:
    """Item 6 of the reviewer's checklist: no minimum, maximum, mean or deviation of raw features or labels."""
    banned = {"min", "max", "amin", "amax", "aminmax", "mean", "std", "var", "median", "quantile", "unique", "bincount"}
    for room in ("aggregation", "models", "training", "methods", "reports", "cli"):
        for file in files(room):
            for node in nodes(file):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in banned:
                    text = ast.unparse(node)
                    accuracy = "== graph.y" in text  # of a simulation, in the places named above
                    raw = "graph.x" in text or "graph.y" in text
                    assert accuracy or not raw, f"{file.relative_to(SOURCE)}: {text}"


#: Draws of torch and numpy, whose next number follows from those before it.
PREDICTABLE = {
    *("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson", "default_rng"),
    *("rand_like", "randn_like", "randint_like", "random_", "uniform_", "normal_", "bernoulli_", "exponential_"),
    *("geometric_", "cauchy_", "log_normal_", "RandomState", "Generator", "manual_seed"),
}
#: Where they draw what is no noise of a release.
PUBLIC_DRAWS = {
    "aggregation/inputs.py": "probes that measure reports",
    "mechanisms/comparison.py": "values that mechanisms are compared on",
    "training/dp_sgd.py": "masks of dropout, seeded anew from the source of the noise at each step",
}


def predictable_draws(module: ast.AST) -> set[str]:
    """The names of `PREDICTABLE` that are called."""
    calls = [node.func for node in ast.walk(module) if isinstance(node, ast.Call)]
    return {call.attr for call in calls if isinstance(call, ast.Attribute)} & PREDICTABLE


def test_privacy_noise_comes_from_no_generator_of_torch_or_numpy() -> None:
    private = [file for room in ("privacy", "mechanisms", "engine", "aggregation") for file in files(room)]
    descent = ("clip_loop", "clip_tensor", "clipped_sum", "dp_sgd", "noisy_updates")
    private += [SOURCE / "training" / f"{name}.py" for name in descent]
    draws_by_file = {str(file.relative_to(SOURCE)): predictable_draws(tree(file)) for file in private}
    assert {name for name, draws in draws_by_file.items() if draws} == set(PUBLIC_DRAWS)
    assert predictable_draws(ast.parse("torch.empty(3, device=x.device).normal_()")) == {"normal_"}


#: Words that say what happened to a value, in place of what it is.
WORDS = {
    *("told", "found", "asked", "made", "said", "known", "kept"),
    *("one", "ones", "others", "shown", "held", "taken", "spoken"),
}
#: The one field of the collector's JSON.
IN_FILES = {"collection/service/models.py: asked"}


def names_bound(file: Path) -> set[str]:
    """The names that a file gives to parameters, values, fields, functions and classes."""
    bound = {node.arg for node in nodes(file) if isinstance(node, ast.arg)}
    bound |= {node.id for node in nodes(file) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.attr for node in nodes(file) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    return bound | {node.name for node in nodes(file) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def named_by_words(folder: Path) -> set[str]:
    """Each file below a folder that binds one of `WORDS`, and the name."""
    return {
        f"{file.relative_to(folder)}: {name}"
        for file in folder.rglob("*.py")
        for name in names_bound(file)
        if name.strip("_") in WORDS
    }


def test_names_say_what_a_value_is() -> None:
    assert named_by_words(SOURCE) == IN_FILES


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "docs"])
def test_names_outside_the_source_say_it_too(folder: str) -> None:
    assert named_by_words(TESTS.parent / folder) == set()
