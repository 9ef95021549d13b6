"""Make tests/data/byzfl_vectors.json: what ByzFL 0.0.11 answers for random vectors. It needs PyTorch: run it in an environment of its own.

python -m venv byzfl && byzfl/bin/pip install byzfl==0.0.11 && byzfl/bin/python tools/make_byzfl_vectors.py tests/data/byzfl_vectors.json
"""
import json
import sys
from pathlib import Path

import numpy as np


def main(target: str,  # JSON file, written anew
         ) -> None:
    "Write vectors and what four rules of ByzFL make of them."
    from byzfl import CenteredClipping, Krum, Median, MultiKrum
    cases = []
    rng = np.random.default_rng(20)
    for n, f, d in ((5, 1, 3), (7, 2, 33), (10, 2, 5), (13, 5, 33), (20, 4, 8)):
        vectors = rng.normal(0, 1, (n, d)).round(6)
        vectors[:f] = (vectors[:f] * 10 - 4).round(6)
        made = {"krum": Krum(f)(vectors), "multi-krum": MultiKrum(f)(vectors), "median": Median()(vectors),
                "centred-clipping": CenteredClipping(L=3, tau=1.0)(vectors)}
        cases.append({"f": f, "vectors": vectors.tolist(), "answers": {rule: np.asarray(v).tolist() for rule, v in made.items()}})
    Path(target).write_text(json.dumps(cases) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
