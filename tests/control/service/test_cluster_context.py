"""Threads begin with the cluster of the thread that starts them, in a process of its own."""

import subprocess
import sys

CODE = """
import threading
from concurrent.futures import ThreadPoolExecutor
from control.service.cluster_context import CLUSTER, inherit_contexts

class Own(threading.Thread):
    def run(self):
        print("own", CLUSTER.get())

def nested():
    CLUSTER.set("west")
    thread = threading.Thread(target=lambda: print("inner", CLUSTER.get()))
    thread.start()
    thread.join()

inherit_contexts()
inherit_contexts()
CLUSTER.set("east")
for thread in (Own(), threading.Thread(target=nested)):
    thread.start()
    thread.join()
with ThreadPoolExecutor(1) as pool:
    print("pool", pool.submit(CLUSTER.get).result())
print("outer", CLUSTER.get())
"""


def test_threads_of_every_kind_work_for_the_cluster_of_their_starter() -> None:
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True, text=True)
    assert run.stdout.splitlines() == ["own east", "inner west", "pool east", "outer east"]
