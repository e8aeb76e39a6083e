"""Side-by-side benchmarks.  They print; they assert nothing."""
