"""Groups whose members share out the work among themselves: one of them leads, and assigns."""
