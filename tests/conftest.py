"What every test may ask for."
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    "The project's folder."
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    "The folder of data that is too large for the repository; set RLM_SHARED to where it is."
    place = Path(os.environ.get("RLM_SHARED") or ROOT.parent / "shared")
    if not place.is_dir():
        pytest.skip(f"needs shared data: set RLM_SHARED to its folder ({place} is not there)")
    return place
