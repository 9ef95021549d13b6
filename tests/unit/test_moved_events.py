"An appointment that was moved is answered with its new moment, whatever it is called: *the recital* is Lena's violin recital."

import pytest

from rlm import Memory

MOVED = (
    ("Lena's violin recital is on June 12.", "The recital was moved to June 19.", "When is Lena's violin recital?"),
    ("My interview with Samsung is on May 20.", "The interview was rescheduled to May 25.", "When is my interview with Samsung?"),
    ("I have a physio session on Wednesday at 4 pm.", "The session has been moved to Friday at 2 pm.", "When is my physio session?"),
    ("We booked the family reunion for August 8.", "The reunion has been moved to August 15.", "When is the family reunion?"),
    ("Mia's swimming class is on Mondays.", "The class was moved to Wednesdays.", "When is Mia's swimming class?"),
    ("My mother's hip operation is on 3 March.", "The operation was put off until 17 March.", "When is my mother's hip operation?"),
    ("My vet appointment for Bo is on June 1.", "The vet appointment was switched to June 4.", "When is my vet appointment for Bo?"),
    ("Dad's check-up is on 4 June.", "The check-up has moved to 11 June.", "When is Dad's check-up?"),
    ("My eye exam is on October 9.", "My exam got rescheduled to October 16.", "When is my eye exam?"),
    ("The school trip to the zoo is on Thursday.", "The trip has been shifted to Friday.", "When is the school trip to the zoo?"),
    ("피아노 수업은 5월 20일이야.", "수업이 5월 27일로 미뤄졌어.", "피아노 수업 언제야?"),
    ("독서 모임은 4월 3일이야.", "모임 4월 10일로 옮겼대.", "독서 모임 언제야?"),
    ("내 건강검진은 5월 6일이야.", "검진 날짜가 5월 13일로 바뀌었어.", "내 건강검진 언제야?"),
    ("주방 가구 배송이 화요일에 와.", "배송이 목요일로 늦춰졌어.", "주방 가구 배송 언제 와?"),
    ("딸 학예회는 11월 5일이야.", "학예회 11월 12일로 밀렸어.", "딸 학예회 언제야?"),
    ("강아지 예방접종이 3월 8일이야.", "접종을 3월 15일로 미뤘어.", "강아지 예방접종 언제야?"),
)
OTHERS = (  # memories of which the last ends none
    ("My interview with Samsung is on May 20.", "My interview with LG is on May 22.", "The interview was rescheduled to May 25."),
    ("피아노 수업은 5월 20일이야.", "요가 수업은 5월 21일이야.", "수업이 5월 27일로 미뤄졌어."),
    ("Tom's surgery is on Monday.", "My surgery was moved to Friday."),
    ("My surgery is on Monday.", "Tom's surgery was moved to Friday."),
    ("My dentist appointment is on Tuesday at 3.", "The vet appointment was moved to Thursday."),
    ("치과 예약은 화요일 3시야.", "미용실 예약이 목요일로 바뀌었어."),
    ("우리 딸 발표회는 6월 12일이야.", "조카 발표회가 6월 19일로 미뤄졌어."),
    ("The meeting with Han is on Monday.", "The meeting with Jo was moved to Friday."),
    ("The concert is on Friday.", "We moved the couch on Saturday."),
    ("My driving test is on July 2.", "The Covid test is now on July 9."),
    ("My birthday is on May 4.", "The party was moved to May 6."),
)


def _told(memory, texts, chats):
    "Write texts singly, in one conversation, or each in its own."
    if chats == 0:
        return [memory.write(text) for text in texts]
    turns = [{"role": "user", "content": text} for text in texts]
    return [r for part in ([turns] if chats == 1 else [[t] for t in turns]) for r in memory.add_conversation(part)]


@pytest.mark.parametrize("chats", [0, 1, 2])
@pytest.mark.parametrize(("before", "after", "question"), MOVED)
def test_a_moved_event_is_answered_with_its_new_moment(before, after, question, chats):
    with Memory(":memory:", embedder="none") as memory:
        old, _, new = _told(memory, (before, "I had pasta for lunch.", after), chats)
        hits = memory.search(question, k=3)
        assert hits[0].id == new.id
        assert all(h.past for h in hits if h.id == old.id)


@pytest.mark.parametrize("chats", [0, 1])
@pytest.mark.parametrize("texts", OTHERS)
def test_a_moved_event_leaves_other_events_as_they_were(texts, chats):
    with Memory(":memory:", embedder="none") as memory:
        for told in _told(memory, texts, chats)[:-1]:
            assert memory.get(told.id).valid_to is None and not memory.history(told.id).past


@pytest.mark.parametrize(("told", "moved", "question", "now"), [
    ("My physio appointment is on 12 March at 10am.", "They moved the physio to 19 March at 2pm.", "When is the physio?", "19 March"),
    ("My piano lesson is on Monday.", "The piano has been moved to Friday.", "When is my piano lesson?", "Friday")])
def test_an_event_is_named_by_what_it_is_for(told: str, moved: str, question: str, now: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.add_conversation([("Theo", told), ("Theo", moved)])
        best = memory.search(question)[0]
        assert now in best.text and not best.past


def test_another_event_there_stays() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.add_conversation([("Theo", "My dance class is on Monday."), ("Theo", "They moved the piano class to Friday.")])
        assert not any(h.past for h in memory.search("When is my dance class?"))
