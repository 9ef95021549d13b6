"Language models behind one small protocol."

from rlm.agent.models.base import Message, Model, ModelError, Reply, ScriptedModel, Usage
from rlm.agent.models.clients import AnthropicModel, OpenAIModel, open_model

__all__ = ["AnthropicModel", "Message", "Model", "ModelError", "OpenAIModel", "Reply", "ScriptedModel", "Usage", "open_model"]
