"""The table of rules: everything that kdmaps checks, in the order of causes, with limits, reasons and messages.

A rule that fails often because another one does is named in `explains` of the other: it is shown, without a warning of
its own.
"""

from typing import Any

from kdmaps.checks.check import PHRASES, RULES, Rule, Severity, Side, Subject

LEAST, INSIDE = Side.LEAST, Side.INSIDE
DATA, ESTIMATE = Subject.DATA, Subject.ESTIMATE
NOTE, ERROR = Severity.NOTE, Severity.ERROR


def _rule(code: str, what: str, message: str, remedy: str = "", option_remedy: str = "", **settings: Any) -> Rule:
    """Add a rule to the table."""
    explains = frozenset(settings.pop("explains", ()))
    RULES[code] = Rule(code, what, message, remedy, option_remedy, explains=explains, **settings)
    return RULES[code]


PHRASES.update(
    {
        "or fewer": " or fewer {n_components} (at most {before})",
        "suggested": " (suggested: {suggested})",
        "fewer or": "{fewer} or ",
        "shorter lag": "Use a shorter lag{fewer}.",
        "shorter steps": "Use frames at shorter time steps{fewer}.",
        "shorter lag or order": "Use a shorter lag, or check that rows are consecutive frames, close enough in time.",
        "order": "Check that the rows are consecutive frames, close enough in time.",
        "stable modes": "only the first {count} are stable",
        "no stable modes": "none is stable",
        "in a biased simulation": "in a biased simulation with weights",
        "in a longer trajectory": "in a longer trajectory",
        "detached alone": (
            "{Rows} {rows} of X (counted from 0) {lie} alone behind an empty gap, {away} typical distances from the "
            "nearest others: a slow mode of all rows would only distinguish {them}."
        ),
        "detached alone, left out": (
            "{Rows} {rows} of X (counted from 0) {lie} alone behind an empty gap, {away} typical distances from the "
            "nearest others, and {are} left out of the fit."
        ),
        "detached group": (
            "{count} rows of X ({share}; {rows}, counted from 0) lie{in_groups} behind an empty gap: exchange with "
            "them is slower than anything else here and cannot be timed."
        ),
        "detached group, left out": (
            "{count} rows of X ({share}; {rows}, counted from 0) lie{in_groups} behind an empty gap: exchange with "
            "them is slower than anything else here and cannot be timed. They are left out of the fit, as {states}."
        ),
        "standardize": "add --standardize",
        "similar units": "convert columns to similar units",
        "degrees": "reach {largest}, as angles in degrees do, but are read as radians",
        "radians": "fill a turn in radians, but are read as degrees",
        "give degrees": "If they are in degrees, give {degrees:True}.",
        "leave out degrees": "If they are in radians, leave out {degrees}.",
        "transposed": " X has more columns ({columns}) than rows; if rows are variables, give its transpose.",
    }
)

# --- reading files ------------------------------------------------------------------------------------------------
NUMBERED_COLUMNS = _rule(
    "numbered-columns",
    "files whose first line was read as numbers of columns",
    "The first line of {path} ({shown}) was read as the numbers of the columns, not as a sample.",
    "If it is a sample, give {header:False}.",
    subject=DATA,
)
INDEX_COLUMN = _rule(
    "index-column",
    "files with an unnamed first column",
    "The first column of {path} is unnamed and was left out as the index of a data frame.",
    "If it is a coordinate, give it a name.",
    subject=DATA,
)
WORDS = _rule(
    "words",
    "columns without numbers",
    "Columns without numbers are left out: {where}.",
    "Name the columns to fit with --columns, or the column that identifies trajectories with --groups.",
    subject=DATA,
)

# --- data ---------------------------------------------------------------------------------------------------------
TIME_OR_INDEX = _rule(
    "time-or-index",
    "columns that are a time or an index",
    "Column(s) {where} of X look like a time or an index, which becomes the slowest mode.",
    "Leave them out of X.",
    "Name the others with --columns.",
    subject=DATA,
    severity=ERROR,
    headline="column {where} is a time or an index",
    explains=("empty-gap",),
)
WEIGHT_COLUMNS = _rule(
    "weight-columns",
    "columns of weights that are used as coordinates",
    "Column(s) {where} of X have the names of weights or bias energies, but are used as coordinates.",
    "Leave them out of X and pass weights as {sample_weight}.",
    "Give weights with --weights NAME, and leave out the others: name the coordinates with --columns.",
    subject=DATA,
    severity=ERROR,
    headline="column {where} has the name of a weight, but is used as a coordinate",
)
CONSTANT_COLUMNS = _rule(
    "constant-columns",
    "constant columns",
    "Column(s) {where} of X are constant and carry no information.",
    "Drop them.",
    "Name the others with --columns.",
    subject=DATA,
)
DISCRETE_COLUMNS = _rule(
    "discrete-columns",
    "columns with few distinct values",
    "Column(s) {where} of X have at most {most} distinct values: modes become steps between these values, and rates "
    "are meaningless.",
    "Give X without rounding; leave out counts and categories, or fit each of their values separately.",
    subject=DATA,
)
ONE_HOT_COLUMNS = _rule(
    "one-hot-columns",
    "columns that encode a category",
    "Column(s) {where} of X are 0 or 1 with the same number of ones in every row, like the codes of a category: the "
    "modes will only separate the categories.",
    "Leave them out of X; fit each category separately, or mark rows that belong together with groups.",
    subject=DATA,
)
COPIED_COLUMNS = _rule(
    "copied-columns",
    "columns that repeat others",
    "Column(s) {where} of X repeat column(s) {first}, but for unit and origin: this coordinate counts several times in "
    "distances, and time scales along it are too long.",
    "Keep one of each.",
    "Keep one of each: name the columns with --columns.",
    subject=DATA,
)
SCALES = _rule(
    "scales",
    "ratio of the largest to the smallest standard deviation of a column, where scales have a gap",
    "Column {large} of X varies {ratio} times as much as column {small}, which hardly contributes to distances; modes "
    "along it appear fast.",
    "In a table of measurements, divide columns by their standard deviations: {standardize:True} of a search, or "
    "scikit-learn's StandardScaler in a pipeline; for coordinates of a diffusion, give their diffusion constants with "
    "{diffusion}.",
    "In a table of measurements, {rescale}; for coordinates of a diffusion, give their diffusion constants with "
    "--diffusion.",
    limit=100.0,
    reason="Columns of one physical unit rarely differ by more; beyond it the smaller column contributes less than "
    "1e-4 to squared distances.",
    subject=DATA,
    severity=ERROR,
    headline="column {large} decides everything ({ratio}×)",
)
ANGLES = _rule(
    "angles",
    "columns that wrap around like angles",
    "Column(s) {where} of X fill {turn} up to both ends, as angles do: the two ends are the same place, but far apart "
    "in X.",
    "Use cosine and sine: kdmaps.data.angles(X, {columns}{degrees}).",
    "If they are angles, use cosine and sine: --angles {listed}.",
    subject=DATA,
)
POSSIBLE_ANGLES = _rule(
    "possible-angles",
    "columns that may be angles",
    "Column(s) {where} of X fill {turn} evenly, as angles may.",
    "If they are angles, use cosine and sine: kdmaps.data.angles(X, {columns}{degrees}).",
    "If they are angles, use cosine and sine: --angles {listed}.",
    subject=DATA,
    severity=NOTE,
)
ANGLE_UNITS = _rule(
    "angle-units",
    "angles that seem to have another unit",
    "Angles {where} {reason}: their cosine and sine are wrong.",
    "{unit}",
    subject=DATA,
)
FEW_ROWS = _rule(
    "few-rows",
    "rows",
    "{value:.0f} rows are too few for the default of four modes, which needs at least {limit:.0f}.",
    "Use more rows, hundreds for each mode, or fewer {n_components}.",
    side=LEAST,
    limit=40.0,
    reason="Ten rows for each mode; folds of fewer do not determine four modes.",
    subject=DATA,
    form=".0f",
)
COPIES_OF_ROWS = _rule(
    "copies-of-rows",
    "rows that repeat others",
    "{copies} of {rows} rows repeat others: folds test on training samples, and error bars are too small.",
    "Keep one of each, with the number of copies as {sample_weight} if it is meaningful.",
    subject=DATA,
    form=".0f",
    bound="at most {limit:.0f}",
)
UNALIGNED_ATOMS = _rule(
    "unaligned-atoms",
    "share of the variance that superposition leaves",
    "The {columns} columns of X are coordinates of {atoms} atoms that rotate: the slowest modes are rotations of the "
    "whole molecule.",
    "Superpose the frames (trajectory.superpose(trajectory), descriptor heavy-atoms or atoms), or use dihedrals or "
    "distances.",
    "Use --descriptor heavy-atoms, dihedrals or distances with the topology.",
    side=LEAST,
    limit=0.2,
    reason="0.08 for alanine dipeptide, more than 0.25 for any noise in as many columns as five atoms have.",
    subject=DATA,
)
OUTLIERS = _rule(
    "outliers",
    "rows behind an empty gap",
    "{said}",
    "If they are a state, sample the transition or bias along it; if an error, remove them.",
    reason="Single linkage leaves a few rows apart at 1.4 median distances between rows, or at 2.1 median distances to "
    "the third neighbour if that is more; the largest spacing of honest samples is 1.32.",
    subject=DATA,
    form=".0f",
)
DOMINATING_WEIGHTS = _rule(
    "dominating-weights",
    "effective samples that the weights leave",
    "The weights leave {value:.1f} effective samples of {rows}: a few rows determine the result.",
    "Check how {sample_weight} was computed, or sample longer or closer to the target distribution.",
    side=LEAST,
    reason="1 % of the rows, and 50 if there are 100 rows or more.",
    subject=DATA,
    explains=("independent-samples", "unresolved"),
)
INTERLEAVED_WALKERS = _rule(
    "interleaved-walkers",
    "walkers whose frames take turns",
    "Rows depend on the row {walkers} places before (correlation time about {time} such steps), like interleaved "
    "frames of {walkers} walkers.",
    "Folds and the bootstrap keep each walker together; pass groups, the walker of each row (its number modulo "
    "{walkers}), to state this explicitly. Otherwise shuffle the rows, or pass {cv:3} or the right groups.",
    "Folds and the bootstrap keep each walker together; name the column of walkers with --groups to state this "
    "explicitly. Otherwise add --no-ordered, or give the right groups.",
    subject=DATA,
    limit=1.0,
    form=".0f",
)
SORTED_ROWS = _rule(
    "sorted-rows",
    "whether rows follow a trend",
    "Rows follow a trend, but consecutive rows do not depend on each other otherwise, like a sorted table.",
    "They are taken for independent samples, with random folds. If they are frames of a trajectory, pass lag, or "
    "{cv:kdmaps.BlockedKFold(5)}; otherwise shuffle the rows, or pass {cv:3}.",
    "They are taken for independent samples, with random folds. If they are frames of a trajectory, add --lag or "
    "--ordered; otherwise add --no-ordered.",
    subject=DATA,
)
CONSECUTIVE_FRAMES = _rule(
    "consecutive-frames",
    "correlation time of rows that are taken for samples",
    "Rows depend on the preceding rows (correlation time about {time} rows), like consecutive frames of a trajectory.",
    "If they are frames of an unbiased simulation, use {lag:auto} and {time_step} for time scales in real time. "
    "Without a lag, folds are blocks of rows, separated by gaps of that time. If the order of rows has no meaning, "
    "shuffle them or pass {cv:3}.",
    "If they are frames of an unbiased simulation, use --lag auto and --time-step for time scales in real time. "
    "Without a lag, folds are blocks of rows, separated by gaps of that time. If the order of rows has no meaning, "
    "add --no-ordered.",
    subject=DATA,
    limit=1.0,
)
SURFACE = _rule(
    "surface",
    "curved surface",
    "The samples lie on a curved surface of dimension {dimension} in {columns} columns.",
    "This is not a mistake. With {diffusion:tangent} the energy is computed along the surface, and modes and rates are "
    "more accurate.",
    subject=DATA,
    severity=NOTE,
)
OTHER_DATA = _rule(
    "other-data",
    "share of the samples of the fit that are missing here",
    "These are not the samples of the fit: {missing} of {probes} samples that the model keeps are not among these "
    "rows.",
    "Give the training samples; for other samples, use transform, or fit a model of their own.",
    "Give the file of the fit; for other samples, use kdmaps transform, or fit a model of their own.",
    subject=DATA,
    severity=ERROR,
    headline="these are not the samples of the fit",
)
OTHER_TIME_STEP = _rule(
    "other-time-step",
    "time between rows relative to the fit",
    "By their times, rows are {own} apart, but the time step of the fit is {fitted}: all times are wrong by a factor "
    "of {factor:.3g}.",
    "Give rows at the time step of the fit, and the time between rows as {time_step}.",
    "In a fit, omit --time-step; otherwise use the --stride of the fit, or rows at its time step.",
    side=INSIDE,
    least=0.999,
    limit=1.001,
    subject=DATA,
    severity=ERROR,
    headline="rows have another time step than the fit",
    reason="Times of files are rounded; factors of 1000 between units of time do not count.",
)
WEIGHTED_PAIRS = _rule(
    "weighted-pairs",
    "weights of pairs of frames",
    "sample_weight with lag: each pair of frames has the weight of its first frame, which is correct for unbiased runs "
    "that start out of equilibrium. Frames of a biased simulation follow the biased dynamics, and their time scales "
    "are wrong with any weights.",
    "If there is a bias, leave out lag and keep {sample_weight}.",
    subject=DATA,
)
TIME_STEP = _rule(
    "time-step",
    "time step without a lag",
    "{time_step:{step:g}} has no effect without a lag: time scales of samples are in units of length²/D.",
    'Give lag=1 (or "auto") if X is a trajectory; otherwise leave out {time_step}.',
    "Add --lag if the rows are a trajectory; otherwise leave out --time-step.",
    subject=DATA,
)
SHORT_TRAJECTORIES = _rule(
    "short-trajectories",
    "trajectories that are not longer than the lag",
    "{value:.0f} of {count} trajectories ({shown}; counted from 0 in a list) are not longer than lag={lag_frames} and "
    "are ignored, unless a later call of partial_fit continues them.",
    "Use a shorter lag, or leave them out.",
    subject=DATA,
    form=".0f",
)
FOLDS_LEFT_OUT = _rule(
    "folds-left-out",
    "folds that are left out",
    "{value:.0f} of {count} folds of cv are left out: they have too few of the {rows} samples of the search.",
    "Use fewer folds, or a larger max_search_samples.",
    subject=DATA,
    form=".0f",
)
CHANGED_CHECKPOINT = _rule(
    "changed-checkpoint",
    "lines of the checkpoint that are not used",
    "{value:.0f} of {count} lines of the checkpoint {path} were changed after they were written, or belong to another "
    "search; their candidates are evaluated again.",
    subject=DATA,
    form=".0f",
)
COMMITTOR_FOLDS = _rule(
    "committor-folds",
    "folds of blocks or groups with samples of both sets",
    "Folds of whole groups or blocks leave no samples of A or B to train on, so folds are random. The choice of the "
    "kernel is then too optimistic for correlated rows: sample A and B in several groups or stretches of time.",
    side=LEAST,
    limit=2.0,
    subject=DATA,
    form=".0f",
)
NO_TANGENT_SPACES = _rule(
    "no-tangent-spaces",
    "dimension of tangent spaces",
    "{count} distinct samples show no tangent spaces of fewer than {columns} dimensions, so the ambient energy is "
    "used, which changes rates and modes on a manifold.",
    "Give TangentDiffusion the dimension, or fit more samples.",
    subject=DATA,
    form=".0f",
    bound="at most {limit:.0f}",
)

# --- solving ------------------------------------------------------------------------------------------------------
CONDITION = _rule(
    "condition",
    "condition number of L+λR",
    "The condition number of L+λR is {value:.1e}: rounding spoils the modes.",
    "Increase {regularization} or use fewer features.",
    limit=1e12,
    reason="Beyond it the modes lose more than about four digits to rounding.",
    form=".2g",
    bound="at most {limit:.0g}",
)
JITTER = _rule(
    "jitter",
    "part of the mean diagonal that was added to a matrix",
    "{matrix} is not positive definite in floating point; {value:.0e} of its mean diagonal was added.",
    "{advice}",
    form=".0e",
)
SINGLE_PRECISION = _rule(
    "single-precision",
    "variance that single precision adds",
    "Single precision may spoil mode {first}: it is a small difference of large features.",
    "Use dtype='float64', a narrower bandwidth{fewer}.",
    limit=0.5,
    reason="Half of the variance of a mode.",
)
UNRESOLVED = _rule(
    "unresolved",
    "relative sampling error of eigenvalue {mode}, √(effective rank/n)",
    "{samples:.0f} effective samples do not resolve mode {first}{after} (relative error of the eigenvalue about "
    "{error:.2f}).",
    "Use more regularization, a wider bandwidth, more samples{fewer}.",
    limit=0.5,
    reason="Half of the eigenvalue, after Koltchinskii and Lounici (2017).",
    subject=ESTIMATE,
    bound="at most {limit:g}",
)
RIDGE = _rule(
    "ridge",
    "regularization relative to the energy of mode {mode}",
    "The regularization weighs {times} times as much as the energy of mode {mode}: λ determines this mode.",
    "Decrease {regularization} (a rate), or let KernelSearchCV choose it.",
    "Decrease --lambda (a rate), or omit it to search for one.",
    limit=3.0,
    reason="Beyond this ratio λ determines the mode.",
    subject=ESTIMATE,
)
WITHIN_LAG = _rule(
    "within-lag",
    "shortest time scale, of mode {mode}",
    "Mode(s) {numbers} relax within one lag ({limit:.4g}): their time scales are unreliable.",
    "{advice}",
    side=LEAST,
    reason="A mode that relaxes within a lag leaves nothing but noise after it.",
    form=".4g",
    bound="at least one lag, {limit:.4g}",
)
NO_GAP = _rule(
    "no-gap",
    "gap after the last mode, the smaller one of rate{after}/rate{last} and μ{last}/μ{after}",
    "Modes {last} and {after} have the same time scale within the sampling error (gap {value:.3f}): {space} is partly "
    "arbitrary.",
    "Use {n_components:{better}}.",
    side=LEAST,
    reason="The 95 % quantile of the gap that samples give to a degenerate pair; at most 1.35.",
    form=".4g",
    bound="at least {limit:.4g} with {samples:,.0f} effective samples",
)

# --- search -------------------------------------------------------------------------------------------------------
FOLDS_DISAGREE = _rule(
    "folds-disagree",
    "agreement of the folds on the modes, mean squared cosine",
    "The folds disagree on the mode space (mean squared cosine {value:.2f}): use more samples or another "
    "{n_components}{suggested}.",
    side=LEAST,
    limit=0.8,
    reason="Folds whose mode spaces have a mean squared cosine below this do not show the same modes.",
    form=".3f",
)
FLAT = _rule(
    "flat",
    "spread of the best scores of kernels, in standard errors",
    "The score landscape is flat: at its best regularization every kernel scores the same within the standard error.",
    "Either any kernel will do, or the samples show no slow mode: look at fold_agreement_.",
    "Either any kernel will do, or the samples show no slow mode: look at the agreement of the folds.",
    side=LEAST,
    limit=1.0,
    reason="One standard error of the best score.",
)
EDGE = _rule(
    "edge",
    "sides of the grid on which the choice lies",
    "The choice lies on the edge of what was tried: {edges}.",
    "Check the landscape of scores.",
    severity=NOTE,
    form=".0f",
)
LAG_HALVED = _rule(
    "lag-halved",
    "lag that the search uses, relative to the one that was chosen",
    "The search finds no mode that is slower than a lag of {first} frames, so a lag of {used} is used.",
    "Use longer trajectories, or inputs that contain every slow coordinate.",
    side=LEAST,
    limit=1.0,
)
FEWER_MODES = _rule(
    "fewer-modes",
    "modes that the samples determine",
    "The samples determine {value:.0f} functions of the {limit:.0f} that were asked for; these are returned.",
    "Use {n_components:{determined}}, or more distinct samples.",
    side=LEAST,
    form=".0f",
)

# --- trust in every rate ------------------------------------------------------------------------------------------
EMPTY_GAP = _rule(
    "empty-gap",
    "part of the slowest modes that changes inside parts of the samples",
    "The samples form {parts} parts with nothing between them ({shares} of the rows), but the slowest modes change "
    "inside the parts ({value:.0%} of their variance, limit {limit:.0%}) instead of separating them: the kernel "
    "interpolates across the gap, exchange is slower than any rate here, and no rate can be trusted.",
    "Sample the transition between the parts, or fit each part alone.",
    limit=0.05,
    reason="Modes of parts without a connection explain more than 99 % of the variance of their indicators; a smooth "
    "mode across a narrow gap in the middle explains 81 %.",
    severity=ERROR,
    headline="the modes ignore a gap between the samples",
)
ENERGY_SAMPLES = _rule(
    "energy-samples",
    "samples that carry the energy, n_E",
    "Too few samples carry the energy of {modes}: {value:.1f} (limit {limit:g}), so the rate may be off by more than a "
    "factor of 2.",
    "Sample the transition more often, for example {how}.",
    side=LEAST,
    limit=14.0,
    reason="A rate whose energy is carried by n samples has a relative error of about 1/√n. With 14 its 99 % interval "
    "spans a factor of 2 to either side, e^{2.58/√14} = 2: at most one in a hundred rates that pass should be further "
    "off.",
)
VARIANCE_SAMPLES = _rule(
    "variance-samples",
    "samples that carry the variance, n_V",
    "Too few rows of X carry the variance of {modes}: {value:.1f} (limit {limit:g}), and row {row} (counted from 0) "
    "alone carries {share:.0%}.",
    "Remove such rows if they are outliers, or add samples like them.",
    side=LEAST,
    limit=5.0,
    reason="With fewer rows, a mode describes these rows alone; even in the tails of Gaussian samples there are more.",
    explains=("energy-samples", "transition-samples", "held-out-factor"),
)
TRANSITION_SAMPLES = _rule(
    "transition-samples",
    "samples over which the mode changes, n_T",
    "Too few samples lie in the transition of {modes}: {value:.1f} (limit {limit:g}), so the rate depends on how the "
    "kernel interpolates.",
    "Add samples of the transition, for example from a biased simulation with weights.",
    side=LEAST,
    limit=7.0,
    reason="As for the samples that carry the energy, halved: spacings of neighbouring values vary, and "
    "(Σs)²/Σs² = n/2.",
)
INDEPENDENT_SAMPLES = _rule(
    "independent-samples",
    "independent samples",
    "Too few independent samples for {modes}: {value:.1f} (limit {limit:g}), given their {why}correlation in time.",
    "Use more samples, or a longer trajectory if they are frames{weaker}.",
    side=LEAST,
    limit=20.0,
    reason="A variance of n independent values has a relative error of about √(2/n): a third at 20.",
)
MISMATCH = _rule(
    "mismatch",
    "misplaced part of the energy",
    "The kernel or the regularization over-smooths {modes}: {value:.0%} of the energy is misplaced (limit "
    "{limit:.0%}), and the rate is usually too large.",
    "Use more samples or less regularization; if the kernel was set by hand, use AdaptiveDiffusionMap.",
    "Use more samples or less regularization; if the kernel was set by hand, omit --kernel, --bandwidth and --lambda.",
    limit=0.15,
    reason="Among 600 modes with rates correct to 30 %, 1 % exceeded 0.05; a rate 1.7 times too large had 0.3.",
)
HELD_OUT_FACTOR = _rule(
    "held-out-factor",
    "factor between the rates on held-out and on training samples",
    "Overfitting of {modes}: on held-out samples the rate differs {by}.",
    "Use more samples{fewer}.",
    limit=2.0,
    reason="A rate that is off by a factor of 2 on other samples is not known.",
)
KERNEL_FACTOR = _rule(
    "kernel-factor",
    "factor between the rates of kernels with equally good scores",
    "Kernels with equally good scores disagree on the rate of {modes} {by}: the samples do not determine which is "
    "right.",
    "Use more samples{fewer}.",
    limit=3.0,
    reason="Intervals include the rates of such kernels; beyond a factor of 3 they say little.",
)
FEATURE_FACTOR = _rule(
    "feature-factor",
    "factor between the rates of different random features",
    "Too few random features: another draw changes the rate of {modes} {by}.",
    "Increase {n_features}.",
    limit=3.0,
    reason="Intervals include the rates of other draws; beyond a factor of 3 they say little.",
)
DRIFT = _rule(
    "drift",
    "drift along runs, in standard errors",
    "The frames are not in equilibrium: {modes} drift{s} along the runs, by {value:.1f} standard errors (limit "
    "{limit:g}), and time scales are probably too short.",
    "Leave out the beginning of every run, or fit many runs from chosen starting points with the weights of "
    "kdmaps.dynamics.equilibrium_weights.",
    limit=2.33,
    reason="One in fifty stationary systems exceeds it, corrected for the number of comparisons. It is small because "
    "20 runs of one relaxation time show a drift of only 2.5 standard errors.",
    explains=("asymmetry",),  # runs that relax from their starting points are asymmetric in time
)
ASYMMETRY = _rule(
    "asymmetry",
    "asymmetry of lagged correlations in time, in standard errors",
    "The system is driven: correlations of {modes} over one lag differ between forward and backward time by "
    "{value:.0f} standard errors (limit {limit:g}). A reversible fit ignores this, and its rates can be several times "
    "too large.",
    "Fit with {reversible:False}, and use kdmaps.dynamics.koopman for complex rates.",
    "Fit with --no-reversible for complex rates.",
    limit=3.29,
    reason="One in a thousand reversible systems exceeds it, corrected for the number of comparisons; driven systems "
    "exceed it by far.",
)
EXTRAPOLATION = _rule(
    "extrapolation",
    "rows far outside the samples of the fit",
    "{value:.0f} of {count} rows of X lie far outside the samples of the fit, such as row {row} (counted from 0). "
    "Values there are extrapolated and unreliable.",
    "Leave out these rows; extrapolates(X) finds all of them.",
    "Leave out these rows, or fit samples of their region.",
    form=".0f",
)

# --- error bars ---------------------------------------------------------------------------------------------------
FEW_BLOCKS = _rule(
    "few-blocks",
    "independent blocks of samples",
    "Intervals are probably too narrow: the samples form only {value:.0f} blocks of {length}, and reliable intervals "
    "need {limit:.0f}.",
    "Use more samples, or a longer trajectory if they are frames.",
    side=LEAST,
    limit=10.0,
    form=".0f",
)
CORRELATION_TIME = _rule(
    "correlation-time",
    "correlation time of the modes in samples",
    "Intervals are probably too narrow: the correlation time of the modes is {value:.0f} samples, too long for {count} "
    "samples.",
    "Use a longer trajectory.",
    form=".3g",
    bound="at most {limit:.3g}, for ten blocks",
    reason="Blocks of several correlation times are independent, and intervals need ten of them.",
)
RESAMPLES = _rule(
    "resamples",
    "resamples that do not determine the modes",
    "{value:.0f} of {count} resamples do not determine {r} modes, because a few blocks dominate; the intervals are "
    "unreliable.",
    "Use more samples{fewer}.",
    form=".0f",
    bound="at most {limit:.0f}",
    reason="A tenth of the resamples.",
)
BIAS = _rule(
    "bias",
    "rate at a tenth of the regularization, relative to the lower end of its interval",
    "The regularization biases the rate of mode {first} by more than its interval: a tenth of the regularization leads "
    "to a rate of {rate:.3g}.",
    "Decrease {regularization}, or use KernelSearchCV.",
    "Decrease --lambda, or omit it to search for one.",
    side=LEAST,
    limit=1.0,
)

# --- lags ---------------------------------------------------------------------------------------------------------
NO_MEMORY = _rule(
    "no-memory",
    "longest time scale in lags of {lag_frames} frame(s)",
    "No time scale is longer than a lag of {lag_frames} frame(s): the frames are not in temporal order, or too far "
    "apart in time.",
    "Use frames in their original order, at shorter time steps.",
    side=LEAST,
    limit=1.0,
    severity=ERROR,
    headline="no time scale is longer than a lag",
    explains=("within-lag", "no-gap", "unresolved", "bias", "lag-not-flat", "not-flat"),
)
LAG_NOT_FLAT = _rule(
    "lag-not-flat",
    "lag from which time scales of the quick scan are flat",
    "The quick scan of lags found no plateau of implied time scales: they change beyond their errors. A lag of "
    "{lag_frames} frames is used, the longest one below the slowest time scale.",
    "Test the fit with kdmaps.dynamics.validate; use longer trajectories, or inputs that contain every slow "
    "coordinate.",
    "Use longer trajectories, or inputs that contain every slow coordinate.",
    undecided="The quick scan of lags is inconclusive: the trajectories are too short to tell whether implied time "
    "scales are flat ({blocks} independent blocks). A lag of {lag_frames} frame(s) is used, from which they do not "
    "change significantly.",
    undecided_remedy="Use longer trajectories.",
    form=".0f",
    bound="at most {limit:.0f}, the longest lag tried",
)
NOT_FLAT = _rule(
    "not-flat",
    "lag in frames from which implied time scales are flat",
    "Implied time scales of the fitted model are not flat within their errors at any lag up to {longest}: they depend "
    "on the lag.",
    "Use longer trajectories, or inputs that contain every slow coordinate.",
    undecided="The trajectories are too short to tell whether the lag of {own} is long enough: from {blocks} "
    "independent blocks, changes of implied time scales by {steep:.0%} cannot be excluded.",
    undecided_remedy="Use longer trajectories.",
    form=".0f",
    bound="{limit:.0f}, the lag, or less",
    explains=("lag-not-flat",),  # the tests of the fitted model replace the scan
)
CHAPMAN_KOLMOGOROV = _rule(
    "chapman-kolmogorov",
    "Chapman–Kolmogorov test, largest mean difference",
    "Chapman–Kolmogorov test of {steps} lags {result}: one lag does not predict the autocorrelation after several.",
    "Use a longer lag, or inputs that contain every slow coordinate.",
    side=INSIDE,
    least=-0.02,
    limit=0.02,
    decided=0.1,
    reason="Differences of a fiftieth of the variance do not matter; intervals beyond a tenth decide nothing.",
    form="+.2g",
    bound="between −0.02 and 0.02, with its error",
)
TOUCHING_STATES = _rule(
    "touching-states",
    "share of the frames between states",
    "Every frame belongs to a state, so passage times are probably too short: paths cross the border between two "
    "states back and forth.",
    "Label the frames between states -1, as CoarseStates.cores does. This does not concern discrete states without "
    "intermediate frames.",
    side=LEAST,
    bound="more than 0",
)
SEPARATE_STATES = _rule(
    "separate-states",
    "largest density between two states, relative to the density inside",
    "At least two states are parts of one cluster: half-way between them, samples are as dense as inside, and their "
    "border is arbitrary.",
    "Use fewer states.",
    limit=1.0,
    reason="Between parts of one cluster the density is not lower than inside.",
    severity=NOTE,
)
EQUILIBRIUM_WEIGHTS = _rule(
    "equilibrium-weights",
    "negative share of the equilibrium weights",
    "The equilibrium weights are unreliable: {value:.0%} of them is negative (limit {limit:.0%}) and set to 0.",
    "The runs have too few transitions between states; use longer or more runs.",
    limit=0.1,
    reason="Weights are densities; a tenth below 0 means that the functions do not represent them.",
)
DISAGREEMENT = _rule(
    "disagreement",
    "disagreement of the modes about the diffusion constant, in standard errors",
    "The modes imply different diffusion constants, by up to {value:.0f} standard errors: the noise does not have the "
    "same strength along all columns of X, and common_diffusion cannot convert time scales to time.",
    "Fit pairs of frames with lag=1 and time_step.",
    limit=4.0,
)

# --- clocks of bursts -----------------------------------------------------------------------------------------------
CLOCK_STARTS = _rule(
    "clock-starts",
    "deviation of the weighted starts of bursts from the frames, in standard errors",
    "The starts of the bursts contradict their weights: means of the modes over the weighted starts differ from the "
    "frames by {value:.1f} standard errors (limit {limit:g}), so rates are averages over the wrong places.",
    "Give burst_start the result of kdmaps.dynamics.where_to_start (a list of rows means random rows of X), or the "
    "correct burst_weight.",
    "Give --burst-weights unless bursts start from random rows of the samples.",
    limit=3.29,
    reason="One in a thousand correct sets of starts exceeds it; all modes count as one test.",
    explains=("clock-coverage",),
)
CLOCK_BURSTS = _rule(
    "clock-bursts",
    "bursts that carry the energy",
    "Too few bursts carry the energy of {modes}: {value:.1f} (limit {limit:g}), so the rate in real time is a guess.",
    "Start more bursts where the energy of the modes is: kdmaps.dynamics.where_to_start.",
    side=LEAST,
    limit=20.0,
    reason="A ratio that n bursts carry has an error of the order of √(2/n): a third for 20.",
    form=".1f",
)
CLOCK_COVERAGE = _rule(
    "clock-coverage",
    "energy at the starts of bursts over the energy of the frames",
    "The bursts do not cover the transition of {modes}: at their starts, weighted, the energy is {value:.2g} times "
    "that of the frames (allowed: {least:g} to {limit:g}).",
    "Start bursts where the energy of the modes is: kdmaps.dynamics.where_to_start.",
    side=INSIDE,
    least=0.5,
    limit=2.0,
    reason="The two are equal on average; with 20 effective bursts, 98 % lie within a factor of 2.",
    form=".2f",
)
CLOCK_RESOLUTION = _rule(
    "clock-resolution",
    "energy along bursts over the energy at their starts",
    "The metric of {modes} is not resolved: away from the samples of the fit, along bursts, the energy is {value:.2g} "
    "times as large as at their starts (limit {limit:g}), so that the modes depend on directions that do not matter, "
    "and rates are too large.",
    "Use more frames, fewer columns, or AdaptiveDiffusionMap, which finds the directions that matter.",
    limit=2.0,
    reason="Equal for exact modes, which have the same energy at all points of the stationary law.",
    form=".2f",
)
CLOCK_MEMORY = _rule(
    "clock-memory",
    "difference of the clock at the shortest lag from longer lags, in standard errors",
    "The paths of {modes} have a memory: the decay within one frame and within several differ by {value:.1f} standard "
    "errors (limit {limit:g}). Frames are noisy, or the motion is not overdamped within a frame; the rates come from "
    "longer lags ({chosen}).",
    "Compare the estimators in clock_; use frames without noise, or longer time steps if inertia is the cause.",
    limit=3.0,
    reason="Among overdamped systems about one mode in ten exceeds 3 of these standard errors, underdamped and noisy "
    "ones nearly always.",
    form=".1f",
)
CLOCK_LAGS = _rule(
    "clock-lags",
    "difference of the clocks at the two longest lags, in standard errors",
    "No lag within the bursts is long enough for {modes}: the two longest differ by {value:.1f} standard errors (limit "
    "{limit:g}), so the rate still depends on the lag.",
    "Use longer bursts.",
    limit=2.0,
    reason="The limit at which the choice of a lag takes two estimators to be equal.",
    form=".1f",
)

SWARM_CONNECTED = _rule(
    "swarm-connected",
    "share of the frames from which runs do not return",
    "The runs do not connect all regions: {value:.0%} of the frames (limit {limit:.0%}) are in regions that no run "
    "enters and leaves, so weights and populations of these regions are arbitrary.",
    "Start runs on the barriers between the regions, or use longer runs.",
    limit=0.05,
    reason="A state that holds more of the frames changes all populations.",
    form=".2f",
    explains=("swarm-error",),
)
SWARM_SPREADS = _rule(
    "swarm-spreads",
    "spread of the second halves of runs over the spread of the first halves",
    "The runs still spread from where they start: their second halves cover {value:.2f} times the range of the first "
    "(limit {limit:g}), so there may be regions that none of them has reached.",
    "Start runs everywhere that matters, or use longer runs.",
    limit=1.1,
    reason="1 for runs in equilibrium, less for runs that start everywhere; runs from one state of three have 1.2.",
    form=".2f",
    explains=("swarm-error",),
)
SWARM_ERROR = _rule(
    "swarm-error",
    "standard error of the logarithm of the weights between two regions",
    "The runs hardly determine the weights: between two regions, the logarithm of the weights has a standard error of "
    "{value:.2f} (limit {limit:g}).",
    "Use more or longer runs, with more starts between the regions.",
    limit=1.0,
    reason="A factor of e in the relative weight of two regions, as for windows of umbrella sampling.",
    form=".2f",
)

# --- Koopman operator ---------------------------------------------------------------------------------------------
KOOPMAN_UNSTABLE = _rule(
    "koopman-unstable",
    "agreement of the folds on eigenfunction {mode}, mean squared cosine",
    "Eigenfunction(s) {numbers} of the Koopman operator are not reproducible: the folds agree by {value:.2f} (limit "
    "{limit:g}).",
    "Use a longer trajectory or fewer {n_components}.",
    side=LEAST,
    limit=0.8,
    reason="As for the folds of a search.",
    explains=("koopman-overfit",),
)
KOOPMAN_OVERFIT = _rule(
    "koopman-overfit",
    "excess of the held-out error of eigenfunction {mode}",
    "Eigenfunction(s) {numbers} of the Koopman operator are overfitted: held-out frames leave up to {value:.2f} more "
    "unexplained (limit {limit:g}).",
    "Use a longer trajectory or fewer {n_components}.",
    limit=0.1,
    reason="A tenth of the predictable part of an eigenfunction after one lag.",
)
KOOPMAN_OPEN = _rule(
    "koopman-open",
    "residual of eigenfunction {mode} after several lags, relative to its limit",
    "The features do not contain eigenfunction(s) {numbers} of the Koopman operator: correlations on held-out frames "
    "after {steps} lags differ from the prediction by {residual:.0%} (limit {most:.0%}), and decay rates are too "
    "large.",
    "Use more {n_features}, a kernel chosen by AdaptiveDiffusionMap, a longer lag, or inputs that contain the state.",
    "Use more --features, a kernel that the search chooses, a longer lag, or inputs that contain the state.",
    limit=1.0,
    reason="Two standard errors √(k/n) of a correlation after k lags in n frames, from 0.05 to 0.25.",
)

KOOPMAN_GROWTH = _rule(
    "koopman-growth",
    "growth of eigenfunctions relative to the growth of the data",
    "Eigenfunction(s) {numbers} of the Koopman operator grow faster than the data do, {value:.2g} times as much over "
    "half of a trajectory (limit {limit:g}): frames of a longer time would not follow them.",
    "Use longer trajectories; if they decay or grow, at shorter time steps.",
    limit=1.1,
    reason="No part of the data grows faster than the data; a tenth for noise.",
)
KOOPMAN_DICTIONARY = _rule(
    "koopman-dictionary",
    "change of eigenvalues in other dictionaries",
    "The frames do not determine the rate of eigenfunction(s) {numbers} of the Koopman operator: kernels that forecast "
    "nearly as well change it by up to {value:.0%} (limit {limit:.0%}).",
    "Use longer trajectories, or frames from more of the states.",
    limit=0.1,
    reason="Rates of resolved eigenfunctions change by less than 4 %, of those that are wrong by 14 % or more.",
    form=".0%",
)
KOOPMAN_SHARE = _rule(
    "koopman-share",
    "share of the coordinates that a pair of eigenfunctions explains",
    "Eigenfunction(s) {numbers} of the Koopman operator explain less than {limit:.1%} of the coordinates.",
    "They may be artefacts of the features, unless weak oscillations are known to exist.",
    side=LEAST,
    limit=5e-3,
    severity=NOTE,
)

# --- graphs of neighbours -----------------------------------------------------------------------------------------
COMPONENTS = _rule(
    "components",
    "unconnected components of the graph of neighbours",
    "The graph of neighbours has {value:.0f} unconnected components, of {sizes} rows: the first {indicators} modes, of "
    "rate 0, are their indicators.",
    limit=1.0,
    form=".0f",
    bound="{limit:.0f}",
    severity=NOTE,
)
SMALL_GROUPS = _rule(
    "small-groups",
    "rows in small groups apart from all others",
    "{value:.0f} row(s) of X form groups of fewer than {neighbors} rows that are far from all others, such as row(s) "
    "{where} (counted from 0): they have the values of the nearest other row.",
    "Remove rows that are errors; for modes of such small groups, give a smaller {n_neighbors}.",
    form=".0f",
)
UNSTABLE_SPAN = _rule(
    "unstable-span",
    "agreement of halves of the rows on the span of the modes, mean squared cosine",
    "Halves of the rows disagree on the span of the modes (mean squared cosine {value:.2f}, limit {limit:g}): "
    "{stable}.",
    "Use fewer {n_components} or more samples.",
    side=LEAST,
    limit=0.6,
    reason="Halves of noise in 20 and 50 columns reach 0.46 for up to ten modes; the tenth mode of clusters, which is "
    "hardly determined, has 0.63.",
)

# --- committor ----------------------------------------------------------------------------------------------------
SETS_TOUCH = _rule(
    "sets-touch",
    "deviation in A and B before stretching",
    "q misses its value in A or B by {value:.2f} at a sample: the sets touch, or a sample of one lies in the other.",
    "Leave a gap between the sets.",
    form=".2g",
)
SAMPLES_BETWEEN = _rule(
    "samples-between",
    "samples with q from 0.05 to 0.95",
    "{few} samples lie between A and B (q from 0.05 to 0.95), so the flux and the rates are guesses.",
    "Add samples near the transition state, for example from a run that is biased along q.",
    side=LEAST,
    limit=20.0,
    reason="With fewer samples between the sets, their number decides the result.",
    form=".0f",
    explains=("flux-samples", "committor-optimism", "overshoot", "uneven-flux"),
)
FLUX_SAMPLES = _rule(
    "flux-samples",
    "effective number of samples that carry the flux",
    "The flux rests on {value:.0f} samples, so its error is of the order of {error:.0%}.",
    "Add samples where |∇q|² is large, with weights.",
    side=LEAST,
    limit=20.0,
    reason="The relative error of the flux is about 1/√n: 22 %.",
    form=".0f",
)
COMMITTOR_OPTIMISM = _rule(
    "committor-optimism",
    "energy on held-out over training samples",
    "The energy of q is {value:.2g} times as large on held-out samples as on training samples: the samples do not "
    "determine q.",
    "Add samples, or leave out columns that do not matter.",
    limit=1.5,
    reason="Largest ratio of held-out to training energy of a resolved committor.",
    form=".3f",
)
OVERSHOOT = _rule(
    "overshoot",
    "excess over [0, 1] before clipping",
    "q exceeds the range from 0 to 1 by {value:.2f} at row {row} of X before clipping, in a region with few samples or "
    "small weights.",
    "Add samples there.",
    limit=0.25,
    reason="Behind A and B, clipping makes it harmless.",
    form=".2g",
)
UNEVEN_FLUX = _rule(
    "uneven-flux",
    "uneven energy over q (Kuiper's distance)",
    "The energy of q is not evenly distributed over its values, as the energy of a committor is (Kuiper's distance "
    "{value:.2f}): q is too smooth, or weights are wrong.",
    "Add samples, check weights.",
    form=".2g",
    bound="at most {limit:.2g}",
    reason="The distance that 99.9 % of samples do not exceed, 2.3/√n, and 0.1, which is no cause for concern.",
)

# --- simulations and baselines ------------------------------------------------------------------------------------
OVERLAP = _rule(
    "overlap",
    "standard error of a free-energy difference of two windows, in kT",
    "Windows {first} and {second} hardly overlap: the standard error of their free-energy difference is at least "
    "{error:.2g} kT, and the weights of their frames are as uncertain.",
    "Add windows between them, or use softer biases.",
    limit=1.0,
    subject=DATA,
)
WINDOWS_CONVERGE = _rule(
    "windows-converge",
    "whether the free energies of the windows converged",
    "The free energies of the windows did not converge in {steps} steps, and the weights are unreliable: frames of "
    "windows that hardly overlap.",
    "Add windows between them, or use softer biases.",
    subject=DATA,
)
EFFECTIVE_SAMPLES = _rule(
    "effective-samples",
    "effective samples of a biased simulation",
    "The weights leave {value:.1f} effective samples of {rows}: a few samples dominate the result.",
    "Check the units of the bias and kT, discard frames from the time when the bias was still growing, or sample "
    "longer.",
    side=LEAST,
    reason="1 % of the frames, and 50 if there are 100 frames or more.",
    subject=DATA,
)
DISCONNECTED = _rule(
    "disconnected",
    "largest eigenvalue of the kernel matrix",
    "The samples form clusters that the kernel does not connect: the largest eigenvalue is 1, and modes of rate zero "
    "only distinguish the clusters.",
    "Increase {bandwidth}.",
    limit=1 - 1e-10,
    bound="less than 1",
)
ZERO_EIGENVALUES = _rule(
    "zero-eigenvalues",
    "smallest eigenvalue of the kernel matrix",
    "Some eigenvalues are zero within rounding; their rates and modes are meaningless.",
    "Decrease {bandwidth}{fewer}.",
    side=LEAST,
    limit=1e-8,
    reason="The rounding error of an eigenvalue of a matrix whose largest one is 1.",
)
