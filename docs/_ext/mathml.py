"""Render formulas as MathML, which browsers display without scripts or network access."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def _inline(self, node):
    self.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math"))
    for part in filter(str.strip, node.astext().split("\n\n")):
        self.body.append(tex2mathml(part.strip(), as_block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
