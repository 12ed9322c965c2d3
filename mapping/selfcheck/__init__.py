"""Compare the fast computations with slow and simple ones, on the user's machine and fabric."""
