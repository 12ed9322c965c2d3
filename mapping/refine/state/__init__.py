"""What a refiner keeps of a placement while it changes it."""
