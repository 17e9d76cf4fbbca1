"""Runs inside each Python kernel of a build: a cell that raises has its reply, whatever it raises.

ipykernel's reply names the last traceback that IPython has sent. A kernel whose first cell awaits,
and raises a group of exceptions, has sent none, nor set the name to nothing: it fails itself, and
the page would wait for a reply until its time is over. Like
:mod:`verified_book.kernels.audit_hook` it is executed as IPython's configuration.
"""


def reply_without_traceback() -> None:
    """Begins with no traceback in this process, where its kernel is ipykernel's."""
    try:
        from ipykernel.zmqshell import ZMQInteractiveShell
    except ImportError:
        return
    ZMQInteractiveShell._last_traceback = None
