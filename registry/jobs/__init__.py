"""Jobs as schedulers told of them, where they ran, which run now, and what is advised."""
