"""Compute the paper's tables and figures: as printed, by the paper's protocol, and by kdmaps."""

from collections.abc import Sequence

from experiments._runner import options_of
from experiments.paper import NAMES, reproduce


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = options_of("paper", __doc__, n_seeds=5, quick="one seed and fewer problems")
    parser.add_argument("names", nargs="*", help="tables and figures; all of them by default")
    options = parser.parse_args(arguments)
    try:
        pages = reproduce(options.names or NAMES, options.seeds, options.quick, options.out, options.jobs)
    except ValueError as error:
        parser.error(str(error))
    for page in pages:
        print(f"Written: {page}")


if __name__ == "__main__":
    main()
