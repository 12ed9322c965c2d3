"""What running jobs do to a fabric together: shared links, whose ranks load one, what changes do."""
