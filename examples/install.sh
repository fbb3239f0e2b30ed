pip install "runmemory[langgraph]"
