"""
Handwritten digits: intrinsic coordinates of images
===================================================

The 8×8 images of five digits (scikit-learn's ``load_digits``) are points with one coordinate per pixel. There is no
time in these data: the modes are the smoothest functions on them, coordinates along which a diffusion is slow because
intermediate images are rare. The labels are not used to find them.
"""

# %%
# The kernel is selected by held-out images. Pixels have 17 grey values, of which the data check warns, and the fit says
# that its rates are biased: rates of such data mean nothing, the modes are coordinates. The images are in the order in
# which they were written, which is no time: ``cv=3`` draws random folds all the same.

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

warnings.filterwarnings("ignore", ".* distinct values or fewer", kdmaps.exceptions.DataWarning)
warnings.filterwarnings("ignore", ".* rate is biased", kdmaps.exceptions.UnreliableModesWarning)
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
# How many modes does it take? All ten digits, told apart by their five nearest neighbours among the first modes, beside
# scikit-learn's ``SpectralEmbedding``. With its default, a tenth of all images as neighbours, the graph is as good as
# kdmaps. With twelve neighbours it is much better in two dimensions: hardly any edge of such a graph leads from one
# digit to another, and each of its vectors is nearly constant but on one or two digits. Its modes are those of a
# table of images, though, while those of kdmaps are functions of the pixels, which new images have too. Fewer images
# carry its first vectors, as n_V = (Σφ²)²/Σφ⁴ shows. ``python -m experiments.reasons`` compares more methods.
# If groups are what you look for, take as many modes as there are groups, less one.

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
    print(f"{name}: right {shares}; n_V of the first two {carried.round().astype(int)}")
