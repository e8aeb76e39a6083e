"""What everybody is doing: the tree of tasks, each with its stack, and the other threads.  For people who debug."""

import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from types import FrameType

import trio

TASKS_MAX = 500
"""So many are told of: with a task for each connection there may be thousands, and the first ones are ours."""


def everybody() -> str:
    """To be called from a task."""
    lines: list[str] = []
    left = 0
    root = trio.lowlevel.current_root_task()
    for number, (depth, task) in enumerate(tree(root, 0) if root is not None else ()):
        if number < TASKS_MAX:
            lines += indented(f"task {task.name}", task.iter_await_frames(), depth)
        else:
            left += 1
    if left:
        lines.append(f"and {left} more tasks")
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    ours = threading.get_ident()
    for ident, frame in sys._current_frames().items():
        if ident != ours:
            stack = ((each, lineno) for each, lineno in traceback.walk_stack(frame))
            lines += indented(f"thread {names.get(ident, ident)}", reversed(list(stack)), 0)
    return "\n".join(lines)


def tree(task: trio.lowlevel.Task, depth: int) -> Iterator[tuple[int, trio.lowlevel.Task]]:
    """A task and all below it, each with how deep it is."""
    below = [(depth, task)]
    while below:
        at, each = below.pop()
        yield at, each
        children = [child for nursery in each.child_nurseries for child in nursery.child_tasks]
        below += ((at + 1, child) for child in sorted(children, key=lambda child: child.name, reverse=True))


def indented(head: str, stack: Iterable[tuple[FrameType, int]], depth: int) -> Iterator[str]:
    yield "  " * depth + head
    for frame, lineno in stack:
        code = frame.f_code
        yield "  " * depth + f"    {code.co_filename}:{lineno} {code.co_name}"
