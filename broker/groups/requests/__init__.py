"""What handlers put to a coordinator of groups: `act(coordinator, now, *arguments, ticket)`.

Each finds the group, lets it decide, and turns what it raises into the answer.
"""
