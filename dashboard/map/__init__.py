"""The fabric as a picture: coordinates, colours, and the component that draws it."""
