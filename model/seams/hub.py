"""A part of the Hugging Face Hub's client that it does not publish: the errors of a connection.

The client lets the exceptions of its HTTP library through, and it has changed that library twice. The network errors of
the last two have a base class of one name, by which they are recognised.
"""

PARTS = {"huggingface_hub.hf_api.httpx2.TransportError": "the base class of network errors, recognised by its name"}


def is_unreachable(error: Exception) -> bool:
    """Whether this error of the client means that there is no connection to the Hub."""
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    unreachable = (LocalEntryNotFoundError, OfflineModeIsEnabled, ConnectionError, TimeoutError)
    return isinstance(error, unreachable) or any(kind.__name__ == "TransportError" for kind in type(error).__mro__)
