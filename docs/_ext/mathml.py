"""Render formulas as MathML, which browsers display without scripts or network access."""

import re
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
ACCENTS = set("ˆ˜¯ˉ˙→ˇ^~‾")
THIN_SPACE = {"width": "0.1667em"}


def render(tex, as_block):
    """Return TeX as MathML; corrects what docutils sets wrongly."""
    tex = re.sub(r"\\([dt]?frac)(\d)(\d)", r"\\\1{\2}{\3}", tex)  # \frac12
    source = tex2mathml(tex, as_block=as_block).replace("&ApplyFunction;", "\u2061")
    root = ElementTree.fromstring(source)
    for parent in list(root.iter()):
        _correct(parent)
    ElementTree.register_namespace("", NAMESPACE)
    return ElementTree.tostring(root, encoding="unicode")


def _correct(parent):
    """Correct the children of an element: accents with an index, functions, bars and braces."""
    for k, child in enumerate(list(parent)):
        name, text = child.tag.rpartition("}")[2], (child.text or "").strip()
        if name == "munderover" and (child[2].text or "").strip() in ACCENTS:
            base, index, accent = child
            over = ElementTree.Element(f"{{{NAMESPACE}}}mover", {"accent": "true"})
            over.extend([base, accent])
            if parent.tag.endswith("msup") and k == 0:
                parent.tag = f"{{{NAMESPACE}}}msubsup"
                parent[:1] = [over, index]
            else:
                parent[k] = ElementTree.Element(f"{{{NAMESPACE}}}msub")
                parent[k].extend([over, index])
        elif name == "mo" and text == "\u2061" and k + 1 < len(parent):
            if not "".join(parent[k + 1].itertext()).strip().startswith(("(", "[", "{", "|")):
                parent[k] = ElementTree.Element(f"{{{NAMESPACE}}}mspace", THIN_SPACE)
        elif name == "mo" and text in ("|", "‖", "/"):
            child.attrib.update(lspace="0", rspace="0", stretchy="false")
        elif name == "mo" and text in ("{", "}", "⟨", "⟩"):
            child.set("stretchy", "false")


def _inline(self, node):
    self.body.append(render(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math"))
    for part in filter(str.strip, node.astext().split("\n\n")):
        self.body.append(render(part.strip(), as_block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
