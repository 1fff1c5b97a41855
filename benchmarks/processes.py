"""What a process and all that it has started take of the machine."""

import psutil


class Tree:
    """A process, by default this one, with its descendants."""

    def __init__(self, pid: int | None = None) -> None:
        self._root = psutil.Process(pid)

    @property
    def running(self) -> bool:
        """Whether the process itself is there still."""
        return bool(self._root.is_running())

    def cpu_s(self) -> float:
        """User and system seconds of those that run, and of those that ended."""
        total = 0.0
        for process in self._processes():
            times = process.cpu_times()
            total += times.user + times.system
            total += times.children_user + times.children_system
        return total

    def pss_bytes(self) -> int:
        """Memory, with what is shared counted once."""
        total = 0
        for process in self._processes():
            try:
                total += process.memory_full_info().pss
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return total

    def _processes(self) -> list[psutil.Process]:
        try:
            return [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []
