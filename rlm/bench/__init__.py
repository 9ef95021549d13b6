"""One command per benchmark; results as JSON, plotted in the chapters."""
