from __future__ import annotations

import re
from importlib.resources import files

import dashboard.components.fabric_map as component
from dashboard.components.fabric_map import script

FOLDER = files(component)


def test_the_script_is_one_module_with_one_entry() -> None:
    text = script()
    assert not re.search(r"^import ", text, re.MULTILINE)
    assert re.findall(r"^export .*", text, re.MULTILINE) == [
        "export default function drawFabricMap({ data, parentElement, setTriggerValue }) {"
    ]


def test_names_at_the_top_of_its_modules_do_not_meet() -> None:
    names = re.findall(
        r"^(?:export )?(?:default )?(?:const|let|class|function) (\w+)", script(), re.MULTILINE
    )
    assert len(names) == len(set(names))


def test_each_module_imports_only_earlier_ones() -> None:
    for place, name in enumerate(component.MODULES):
        text = FOLDER.joinpath(f"{name}.js").read_text("utf-8")
        for other in re.findall(r'from "\./(\w+)\.js"', text):
            assert component.MODULES.index(other) < place


def test_text_is_never_made_markup_and_nothing_comes_from_elsewhere() -> None:
    everything = script() + FOLDER.joinpath("style.css").read_text("utf-8")
    forbidden = "innerHTML outerHTML insertAdjacent document.write eval( Function( http @import url("
    assert not [word for word in forbidden.split() if word in everything]
