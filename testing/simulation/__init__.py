"""A whole cluster in one process, on one loop, under one seed: brokers, clients, network, ZooKeeper, disks, clocks.

    python -m trilogue.testing.simulation --seeds 0-499

The brokers are the product's own, with real logs; what surrounds them is made here and fails as a plan says.  The same
seed gives the same history, byte for byte.  docs/simulation.md says what is simulated and what is not.
"""
