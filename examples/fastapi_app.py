from functools import lru_cache

from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlm import Memory

app = FastAPI()
memory_of = lru_cache(500)(Memory("agent.db").namespace)  # a user's memory, kept with its index


@app.post("/chat/{user}/{session}")  # in earnest the user comes from the login
async def chat(user: str, session: str, said: str) -> str:
    memory = memory_of(user)
    known = await memory.acontext(said, tokens=300)  # a block for your model's prompt
    await memory.aadd_conversation([{"role": "user", "content": said}], session=session)
    return known.text


with TestClient(app) as client:
    asked = "Who services the boiler?"
    for user, said in [("mina", "Yuna Park services the boiler."), ("mina", asked), ("jun", asked)]:
        print(user, client.post(f"/chat/{user}/june", params={"said": said}).json())
