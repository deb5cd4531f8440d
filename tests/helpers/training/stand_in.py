"""What a server starts in place of ``model.train.live``: it reports and obeys like it, without training or torch.

It ends without being stopped only if the time it is given is short; the checkpoint that it leaves is a copy of another.
"""

import json
import os
import shutil
import sys
import threading

ENDLESS = 100  # seconds; a training of this length or more waits until it is stopped


def report(kind: str, **told: object) -> None:
    print(json.dumps({"kind": kind, **told}), flush=True)


def listen(stopped: threading.Event) -> None:
    for line in sys.stdin:
        if line.strip() == "stop":
            stopped.set()
    os._exit(1)


def main() -> None:
    out, checkpoint, seconds = sys.argv[2:]
    stopped = threading.Event()
    threading.Thread(target=listen, args=[stopped], daemon=True).start()
    report("start", seconds=float(seconds))
    report("step", step=1, seconds=0.1)
    if float(seconds) >= ENDLESS:
        stopped.wait()
    report("finishing")
    shutil.copytree(checkpoint, out)
    report("end", step=1, seconds=0.1, loss=2.5, stopped=stopped.is_set())


if __name__ == "__main__":
    main()
