"""Imports modules once and forks kernels that have them: a program of its own.

It is started when a build begins and imports nothing until the first kernel is asked for. Each
request, a line of JSON on the socket that it was given, is answered by the process number of a new
kernel, which leads a process group, or by what went wrong. The end of its input is the end of the
build, in whatever way. Like :mod:`verified_book.kernels.audit_hook` it runs in the kernels' Python
and imports nothing but the standard library and what it was told to.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from typing import Any

# What `python -m ipykernel_launcher` imports.
LAUNCHER = ("ipykernel.kernelapp", "ipykernel.zmqshell", "ipykernel.iostream")


def serve(requests: socket.socket, modules: Sequence[str]) -> None:
    """Forks a kernel for each request until the input of this process ends.

    Args:
        requests: A socket that listens.
        modules: What to import before the first.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the kernels
    failure: str | None = None
    ready = False
    while True:
        readable, _, _ = select.select([sys.stdin, requests], [], [])
        if sys.stdin in readable:
            return
        connection, _ = requests.accept()
        with connection, connection.makefile("rw", encoding="utf-8") as stream:
            line = stream.readline()
            if not line:  # whoever asked has ended
                continue
            if not ready:
                failure = problem_with(modules)
                ready = True
            answer: dict[str, Any] = {"error": failure}
            if failure is None:
                answer = {"pid": forked(json.loads(line), connection, requests)}
            stream.write(json.dumps(answer) + "\n")


def problem_with(modules: Sequence[str]) -> str | None:
    """Imports modules; which of them failed and why, or started threads, which no fork has."""
    for module in (*LAUNCHER, *modules):
        try:
            importlib.import_module(module)
        except Exception as error:
            return f"{module}: {type(error).__name__}: {error}"
        if len(os.listdir("/proc/self/task")) > 1:
            return f"{module} starts threads, which a forked process has not"
    gc.collect()
    gc.freeze()  # the pages of what is there stay shared
    return None


def forked(request: dict[str, Any], *inherited: socket.socket) -> int:
    """The process number of a new kernel."""
    pid = os.fork()
    if pid == 0:
        try:
            for each in inherited:
                each.close()
            begin(**request)
        except SystemExit:
            pass
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)  # nobody asks how it has ended
    os.setpgid(pid, pid)  # here too, so that it is so before the answer
    return pid


def begin(arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """Does in a forked process what `python -m ipykernel_launcher` does in a new one."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    from ipykernel import kernelapp

    sys.argv = [str(importlib.import_module("ipykernel_launcher").__file__), *arguments]
    # One that knows of no parent prints how to connect to it; for init, 1, it does not look out.
    kernelapp.launch_new_instance(parent_handle=1)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
