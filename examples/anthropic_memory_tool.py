from anthropic.lib.tools import ToolError

from rlm import Memory
from rlm.adapters.memory_tool import MemoryTool

with Memory("agent.db", namespace="claude") as memory:
    tool = MemoryTool(memory)
    print(tool.call({"command": "create", "path": "/memories/boat.md", "file_text": "The engine is serviced in May.\n"}))
    tool.call({"command": "str_replace", "path": "/memories/boat.md", "old_str": "May", "new_str": "June"})
    print(tool.call({"command": "view", "path": "/memories/boat.md"}))
    print(memory.search("when is the engine serviced?")[0].text)
    try:
        tool.call({"command": "view", "path": "/memories/../etc/passwd"})
    except ToolError as refused:
        print(refused)
