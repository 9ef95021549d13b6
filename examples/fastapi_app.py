from contextlib import asynccontextmanager
from functools import lru_cache

from fastapi import FastAPI
from fastapi.testclient import TestClient
from rlm import Memory

@asynccontextmanager
async def lifespan(app):
    with Memory("agent.db") as memory:
        app.state.memory_of = lru_cache(500)(memory.namespace)  # a user's memory, kept with its index
        yield

app = FastAPI(lifespan=lifespan)

@app.post("/chat/{user}/{session}")  # in earnest the user comes from the login
async def chat(user: str, session: str, said: str) -> str:
    memory = app.state.memory_of(user)
    known = await memory.acontext(said, tokens=300)  # a block for your model's prompt
    await memory.aadd_conversation([{"role": "user", "content": said}], session=session)
    return known.text

with TestClient(app) as client:
    for user, said in [("mina", "Yuna Park services the boiler."), ("mina", "Who services the boiler?"), ("jun", "Who services the boiler?")]:
        print(user, client.post(f"/chat/{user}/june", params={"said": said}).json())
