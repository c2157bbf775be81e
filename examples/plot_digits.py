"""
Handwritten digits: intrinsic coordinates of images
===================================================

The 8×8 images of five digits (scikit-learn's ``load_digits``) are points with one coordinate per pixel. There is no
time in these data: the modes are the smoothest functions on them, coordinates along which a diffusion is slow because
intermediate images are rare. The labels are not used to find them.
"""

# %%
# The kernel is selected on held-out images. Two kinds of warnings are ignored here: pixels have only 17 grey values,
# and the modes are over-smoothed. Both concern the rates, which are meaningless for such data; the modes are used as
# coordinates. The order of the images is not an order in time, so ``cv=3`` draws random folds.

import warnings

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import SpectralEmbedding
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import kdmaps

images, digit = load_digits(n_class=5, return_X_y=True)
X = images[:, np.ptp(images, axis=0) > 0] / 16  # drop pixels that are always blank

warnings.simplefilter("ignore", kdmaps.exceptions.DataWarning)
warnings.simplefilter("ignore", kdmaps.exceptions.UnreliableModesWarning)
model = kdmaps.AdaptiveDiffusionMap(4, cv=3, random_state=0).fit(X)
modes = model.transform(X)
print("selected:", model.kernel_, "λ =", f"{model.best_params_['regularization']:.1e}")
print("time scales:", model.timescales_.round(2), "gap after them:", round(model.modes_.gap, 2))

# %%
# Four modes, two at a time, with some of the images at their positions.


def show(ax, points, apart=0.07):
    """Draw a scatter plot coloured by digit, with images that do not cover each other."""
    ax.scatter(*points.T, c=digit, cmap="tab10", vmax=9, s=6, alpha=0.6)
    places = (points - points.min(axis=0)) / np.ptp(points, axis=0)
    shown = []
    for i, place in enumerate(places):
        if all(np.linalg.norm(place - places[j]) > apart for j in shown):
            shown.append(i)
            picture = OffsetImage(images[i].reshape(8, 8), cmap="gray_r", zoom=1.6, alpha=0.8)
            ax.add_artist(AnnotationBbox(picture, points[i], frameon=False))


figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, (i, j) in zip(axes, [(0, 1), (2, 3)], strict=True):
    show(ax, modes[:, [i, j]])
    ax.set(xlabel=f"mode {i + 1}", ylabel=f"mode {j + 1}")
handles = [plt.Line2D([], [], ls="none", marker="o", color=plt.get_cmap("tab10")(k), label=str(k)) for k in range(5)]
axes[1].legend(handles=handles, title="digit", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %%
# Do the modes separate the digits? Clusters of the four modes, and of the four leading principal components, are
# compared with the labels (1 is perfect, 0 is chance). A mode is nearly constant within a cluster, unlike a linear
# coordinate.

for name, points in [("modes", modes), ("principal components", PCA(4).fit_transform(X))]:
    found = KMeans(5, n_init=10, random_state=0).fit_predict(points / points.std(axis=0))
    print(f"{name}: adjusted Rand index {adjusted_rand_score(digit, found):.2f}")

# %%
# How many modes are needed? All ten digits are classified by five nearest neighbours in the space of the first modes,
# for kdmaps and for scikit-learn's ``SpectralEmbedding``. With its default, a tenth of all images as neighbours, the
# graph is as accurate as kdmaps. With twelve neighbours it is much better in two dimensions: hardly any edge of such a
# graph connects different digits, and each of its vectors is nearly constant except on one or two digits. However,
# these vectors are defined only at the given images, whereas the modes of kdmaps are functions of the pixels and can be
# evaluated at new images. The first vectors of the graph also rest on fewer images, as n_V = (Σφ²)²/Σφ⁴ shows. ``python
# -m experiments.reasons`` compares more methods. To separate groups, use one mode fewer than there are groups.

images, digit = load_digits(return_X_y=True)
X = images[:, np.ptp(images, axis=0) > 0] / 16
model = kdmaps.AdaptiveDiffusionMap(9, cv=3, random_state=0).fit(X)
embeddings = {"modes": model.transform(X)}
for k in (len(X) // 10, 12):
    embeddings[f"graph of {k} neighbours"] = SpectralEmbedding(9, n_neighbors=k, random_state=0).fit_transform(X)
for name, points in embeddings.items():
    right = [cross_val_score(KNeighborsClassifier(5), points[:, :r], digit, cv=5).mean() for r in (2, 4, 9)]
    centred = points[:, :2] - points[:, :2].mean(axis=0)
    carried = (centred**2).sum(axis=0) ** 2 / (centred**4).sum(axis=0)
    shares = ", ".join(f"{share:.3f} with {r}" for share, r in zip(right, (2, 4, 9), strict=True))
    print(f"{name}: accuracy {shares} modes; n_V of the first two {carried.round().astype(int)}")
