"""Components of our own: what Streamlit's elements cannot draw fast enough."""
