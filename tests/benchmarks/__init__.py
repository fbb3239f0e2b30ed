"""What Run Memory costs, as ratios of medians taken in one run: ``make bench``. Nothing here is asserted."""
