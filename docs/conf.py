"""The site: ``make site`` builds it from these pages, without network access."""

import sys
from pathlib import Path

import graphveil

sys.path.insert(0, str(Path(__file__).parent / "_site"))

project = "graphveil"
copyright = "The graphveil contributors, Apache-2.0"
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_copybutton",
    "links",
    "command",
    "generated",
    "api",
    "notebooks",
    "versions",
]
exclude_patterns = ["_site", "examples", "pictures"]
nitpicky = True
# Types of other packages, and our own that are not public: signatures name them, no page here explains them.
nitpick_ignore_regex = [("py:.*", ".*")]
# A short name in a signature that two classes have: the link goes to either.
suppress_warnings = ["ref.python"]

myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence"]

autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "no-value": True}
default_role = "code"
smartquotes = False  # --seed stays --seed
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True

html_theme = "furo"
release = graphveil.__version__
html_title = f"graphveil {release}"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_site" / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
copybutton_exclude = ".linenos, .gp, .go"
