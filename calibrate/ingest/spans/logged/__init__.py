"""Read what programs hand to their tracing as input and output, in whatever form clients and exports keep it."""
