"""Chat with a language model: `chat()` gives the process's client, `Chat.ask` sends requests. For detector authors."""

from calibrate.backends.chat.client import Chat, chat
from calibrate.backends.chat.price import Price
from calibrate.backends.chat.types import ChatError, Estimate, Reply, Request

__all__ = ["Chat", "ChatError", "Estimate", "Price", "Reply", "Request", "chat"]
