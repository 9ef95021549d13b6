"""Memory for assistants over the Model Context Protocol: tools, resources and prompts, on standard input and output or over HTTP."""
