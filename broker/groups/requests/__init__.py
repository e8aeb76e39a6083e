"""What handlers put to a coordinator of groups: they find the group, let it decide, and turn what it raises into the
answer.  Every function is told the coordinator, the time and, last, the ticket of the request."""
