"""Sphinx configuration: `make docs` builds the pages with warnings as errors."""

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import matplotlib  # noqa: E402

matplotlib.use("Agg")

import mirror  # noqa: E402
import notebooks  # noqa: E402

import kdmaps  # noqa: E402

project = "kdmaps"
author = "The kdmaps developers"
copyright = f"2026, {author}"
version = release = kdmaps.__version__

GENERATED = HERE / "generated"
mirror.mirror(HERE.parent, GENERATED)
notebooks.write(HERE / "tutorials", GENERATED / "notebooks")

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "generated/gallery_source/**", "generated/backreferences/**", "generated/lists/**"]
suppress_warnings = ["config.cache"]  # the gallery's configuration holds objects that cannot be stored

# --- text -------------------------------------------------------------------------------------------------------------
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "smartquotes"]
myst_heading_anchors = 3
default_role = "py:obj"
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "label"

# --- reference --------------------------------------------------------------------------------------------------------
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_use_plots = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
#: Methods of every scikit-learn estimator, which scikit-learn documents.
SKLEARN = [
    "fit_transform",
    "get_feature_names_out",
    "get_metadata_routing",
    "get_params",
    "set_fit_request",
    "set_predict_request",
    "set_output",
    "set_params",
    "set_partial_fit_request",
    "set_score_request",
    "set_split_request",
    "set_transform_request",
]
autodoc_default_options = {
    "members": True,
    "inherited-members": "ABC,BaseEstimator,NamedTuple,tuple",
    "exclude-members": ",".join(SKLEARN),
}


# --- gallery ----------------------------------------------------------------------------------------------------------
def _format_warning(message, category, *place):
    """Return a warning as pages show it: without its place, which is a path on the machine that builds them."""
    return f"{category.__name__}: {message}\n"


warnings.formatwarning = _format_warning
sphinx_gallery_conf = {
    "examples_dirs": [str(GENERATED / "gallery_source")],
    "gallery_dirs": ["generated/gallery"],
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("kdmaps",),
    "filename_pattern": "plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (640, 448),
}
#: Part of a figure that is the thumbnail of a script: its number, left and right end, as fractions of the width.
THUMBNAILS = {
    "plot_brain": (1, 0, 0.55),
    "plot_digits": (1, 0, 0.475),
    "plot_elnino": (1, 0, 0.63),
    "plot_pictures": (10, 0, 0.36),
    "plot_stocks": (1, 0, 0.325),
    "plot_sunspots": (1, 0, 0.33),
    "plot_swiss_roll": (2, 0.68, 1),
}


def _crop_thumbnails(app):
    """Make thumbnails of parts of figures: whole figures with several panels are unreadable at their size."""
    from PIL import Image

    folder = GENERATED / "gallery" / "images"
    for script, (number, left, right) in THUMBNAILS.items():
        picture = Image.open(folder / f"sphx_glr_{script}_{number:03d}.png").convert("RGB")
        picture = picture.crop((int(left * picture.width), 0, int(right * picture.width), picture.height))
        picture.save(folder / "thumb" / f"sphx_glr_{script}_thumb.png")


# --- look -------------------------------------------------------------------------------------------------------------
html_theme = "furo"
html_title = f"kdmaps {release}"
html_static_path = ["_static"]
html_css_files = ["kdmaps.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"
pygments_style = "friendly"
pygments_dark_style = "native"


def _escape_bars(app, what, name, obj, options, lines):
    """Escape absolute values in docstrings, which reStructuredText would interpret as substitutions."""
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else line.replace("|", "\\|") for line in lines]


def setup(app):
    """Register the hooks; docstrings before numpydoc, which converts their sections to reStructuredText."""
    app.connect("autodoc-process-docstring", _escape_bars, priority=100)
    app.connect("builder-inited", _crop_thumbnails, priority=900)  # after the gallery
