"""Groups to which the coordinator assigns (KIP-848), and how a group becomes one of them and a classic one again."""
