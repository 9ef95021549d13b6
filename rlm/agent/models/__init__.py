"Language models behind one small protocol."

from rlm.agent.models.base import Message, Model, ModelError, Completion, ScriptedModel, Usage
from rlm.agent.models.clients import AnthropicModel, OpenAIModel, open_model

__all__ = ["AnthropicModel", "Message", "Model", "ModelError", "OpenAIModel", "Completion", "ScriptedModel", "Usage", "open_model"]
