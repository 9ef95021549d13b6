"The bodies that the server takes: what is read, and what is refused."
from typing import Any

import pytest
from pydantic import ValidationError

from rlm.service.http.schemas import (
    AnchorBody,
    RecallBody,
    RequestModel,
    SearchBody,
    WriteBody,
    error_location,
)


def test_what_is_given_is_read() -> None:
    assert SearchBody.model_validate({"query": "tea", "top_k": 3}).k == 3 and RecallBody(query="tea", k=2).k == 2
    assert SearchBody(query="tea").k is None and SearchBody(query="tea").filters.given() == {}
    read = SearchBody.model_validate_json('{"q": "차", "filters": {"tags": ["a"], "since": "2026-01-01"}}')
    assert read.filters.given() == {"since": "2026-01-01", "tags": ["a"], "match": "all"}
    assert WriteBody(text="x", tags=["a"]).fields() == {"tags": ["a"]}


@pytest.mark.parametrize(("schema", "body", "where"), [
    (SearchBody, {}, "query"), (SearchBody, {"q": "x", "k": 1, "top_k": 2}, "top_k"), (RecallBody, {"q": "x", "k": 1, "top_k": 2}, "top_k"),
    (SearchBody, {"q": "x", "k": "5"}, "k"), (SearchBody, {"q": "x", "slots": "A"}, "slots"), (SearchBody, {"q": "x", "radius": 1}, ""),
    (WriteBody, {"text": "x", "policy": {}}, ""), (SearchBody, {"q": "x", "filters": {"tag": "a"}}, "filters.tag"),
    (AnchorBody, {}, ""), (AnchorBody, {"pinned": None}, "")])
def test_what_is_wrong_is_refused_with_its_place(schema: type[RequestModel], body: dict[str, Any], where: str) -> None:
    with pytest.raises(ValidationError) as refused:
        schema.model_validate(body)
    assert error_location(("body", *refused.value.errors()[0]["loc"])) == where
