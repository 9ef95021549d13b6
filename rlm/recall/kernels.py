"""A local search as one compiled function, `RECALL`, and the kernels that it is made of.

A neighbourhood is a hundred memories, and the postings of a question's words are some thousand: little to compute. In numpy nearly all of
the time goes into some hundred calls, each of which makes arrays and throws them away. `RECALL` measures the question, finds its slot,
scores and ranks the neighbourhood and, where that is not conclusive, ranks the memories elsewhere that hold the words best along with it.

The kernels compute what the numpy code of this chapter computes, in the same order and precision, so that both give the same results;
`tests/unit/test_local_kernel.py` compares them. Only the codes of a large store are compared along axes in whole steps, which is a little
less exact. Machine code checks no bounds: a kernel checks them where its arrays may be of different moments, as a memory that came after
the mask of what may be found was made.

Arrays are reached through tables of their addresses: a `buffer` for each neighbourhood, one `place` to work in, and the `index`, which is
written down anew when it has changed. Measured: passing sixty arrays one by one takes 16 µs a call, a list of segments 5 µs more, a sixth
of a local answer.
"""

import math

import numpy as np

from ..core.compiled import F4, F8, F44, F88, I1, I2, I4, I8, I11, I88, U1, YES, loop
from ..search.scoring import RANK
from ..search.lexical.bm25 import ADD_POSTINGS_AT, FIND_TERMS
from ..search.vector.quantizer import CODED_Z_SCORES, MEASURE_QUERY, NEAREST_VECTOR, VECTOR_DOT, Z_SCORES
SEGMENT = "i4 i8 i4 f4"  # arrays of each segment: terms, starts, units, impacts


# Words: the weight of each word, and the postings of the rarest words, as many as the budget allows.
@loop("f8+ f4+ i4+ i4* i8")
def WEIGH_TERMS(rarities, weights, numbers, held, documents):  # type: ignore[no-untyped-def]
    "Put the known terms in front, rarest first, with their weights; returns how many there are, and the sum of all weights."
    known, ceiling = 0, 0.0
    for t in range(len(numbers)):  # first of all, so that they are fetched together
        rarities[t] = held[numbers[t]] if 0 <= numbers[t] < len(held) else 0
    for t in range(len(numbers)):
        number, often = numbers[t], rarities[t]
        rarity = math.log(1 + (documents - often + 0.5) / (often + 0.5))
        ceiling += rarity
        if number >= 0:
            at = known
            while at > 0 and rarities[at - 1] < rarity:
                rarities[at], weights[at], numbers[at] = rarities[at - 1], weights[at - 1], numbers[at - 1]
                at -= 1
            rarities[at], weights[at], numbers[at] = rarity, np.float32(rarity), number
            known += 1
    return known, ceiling


@loop("i8++ i8++ ?+ i4* i8** i8")
def FIND_POSTINGS(low, high, read, numbers, segments, budget):  # type: ignore[no-untyped-def]
    "Find the postings of each term by segment, and which terms to read: all, if their postings are within the budget."
    size, reached = 0, 0
    for s in range(len(low)):
        size += FIND_TERMS(low[s], high[s], I4(segments, 4 * s), I8(segments, 4 * s + 1), numbers)
    for t in range(len(numbers)):
        for s in range(len(low)):
            reached += high[s, t] - low[s, t]
        read[t] = size <= budget or reached <= budget
    return size


# Of a hundred thousand units a question touches some thousands. A unit gets its place when it is touched first, and a hash table that
# fits into the processor's cache finds it: less than half of the time of an array with a place for each unit.
@loop("i2* i4* i8 i8")
def _HASH_SLOT(slots, touched, unit, bits):  # type: ignore[no-untyped-def]
    "Return the slot of a unit in a hash table of 2**bits slots (open addressing, Fibonacci hashing); it holds a place from 1, or 0."
    at = ((unit * 0x9E3779B1) & 0xFFFFFFFF) >> (32 - bits)
    while slots[at] > 0 and touched[slots[at] - 1] != unit:
        at = (at + 1) & ((1 << bits) - 1)
    return at


@loop("i4+ f4+ i2+ i8** i8** i8** ?* f4*")
def SUM_POSTINGS(touched, scores, slots, segments, low, high, read, weights):  # type: ignore[no-untyped-def]
    "Add the postings of the terms that are read; returns how many units were touched, and the bits of the hash table."
    n, bits, total = 0, 6, 0
    for t in range(len(weights)):
        for s in range(len(low) if read[t] else 0):
            total += high[s, t] - low[s, t]
    while (1 << bits) < 2 * total:
        bits += 1
    slots[:1 << bits] = 0
    for s in range(len(low)):
        units, impacts = I4(segments, 4 * s + 2), F4(segments, 4 * s + 3)
        for t in range(len(weights)):
            for i in range(low[s, t], high[s, t] if read[t] else low[s, t]):
                at, worth = _HASH_SLOT(slots, touched, int(units[i]), bits), weights[t] * impacts[i]
                place = slots[at]
                if place > 0:
                    scores[place - 1] += worth
                else:
                    touched[n], scores[n] = units[i], worth
                    n += 1
                    slots[at] = n
    return n, bits


# Scores are not negative, and such floats are in the order of their bits: as whole numbers they are compared several at a time.
@loop("f4*")
def HIGHEST_SCORE(scores):  # type: ignore[no-untyped-def]
    "Return the highest of scores from 0; 0 if there are none."
    most, bits = np.zeros(1, np.int32), scores.view(np.int32)
    for i in range(len(bits)):
        most[0] = max(most[0], bits[i])
    return most.view(np.float32)[0]


@loop("f4+ f4+ i2* i8 i4* i4* i4* i4* ?* ?*")
def TAKE_OUT_SCORES(inside, outside, slots, bits, where, gone, touched, unit_doc, alive, passing):  # type: ignore[no-untyped-def]
    "Take out the scores of the neighbourhood's units, and of those that may not be found; returns the highest left."
    for j in range(len(where)):
        place, inside[j] = slots[_HASH_SLOT(slots, touched, int(where[j]), bits)], 0
        if place > 0:
            inside[j], outside[place - 1] = outside[place - 1], np.float32(0)
    for j in range(len(gone)):
        place = slots[_HASH_SLOT(slots, touched, int(gone[j]), bits)]
        if place > 0:
            outside[place - 1] = 0
    for i in range(len(touched) if len(alive) or len(passing) else 0):
        u = touched[i]
        if (len(alive) and not alive[u]) or (len(passing) and (unit_doc[u] >= len(passing) or not passing[unit_doc[u]])):
            outside[i] = 0
    return HIGHEST_SCORE(outside[:len(touched)])


@loop("f4+ i4* i8** i8** i8** ?* f4*")
def ADD_UNREAD(scores, where, segments, low, high, read, weights):  # type: ignore[no-untyped-def]
    "Add the postings of the terms that were not read to some units; returns the sum of these terms' weights."
    unread = 0.0
    for t in range(len(weights)):
        if not read[t]:
            unread += weights[t]
    if unread > 0:
        for s in range(len(low)):
            ADD_POSTINGS_AT(scores, where, I4(segments, 4 * s + 2), F4(segments, 4 * s + 3), low[s], high[s], weights, ~read)
    return unread


# Meaning: the vectors of a neighbourhood lie side by side; a memory of several is as good as its best one.
@loop("f4+ f4** i4* f4* f8 f8")
def COMPARE_VECTORS(meaning, rows, owner, unit, mean, spread):  # type: ignore[no-untyped-def]
    "Raise each memory's z-score to that of its best vector."
    middle, scale = np.float32(mean), np.float32(spread)
    for i in range(len(owner) if rows.shape[1] == len(unit) else 0):
        worth = (VECTOR_DOT(rows[i], unit) - middle) / scale
        if worth > meaning[owner[i]]:
            meaning[owner[i]] = worth


# Positions of arrays in the tables of addresses, and the types of each table.
WORDS, MEANING, NUMBERS, SEQ, SESSION, SCRIPT, USER, LENGTH, SPEAKER, TYPES, WHERE, MEMBER, ROWS, OWNER = range(14)
BUFFER = "f4 f4 i8 i8 i4 i1 ? f4 i4 u1 i4 i4 f4 i4"  # types of a buffer: scores, memories, facts; units and vectors, and their owners
TOUCHED, OUTSIDE, SLOTS, BEST, WEIGHTS, READ, WORTH, ADDED, FOUND, PICKED, TOTAL, ORDER = range(12)
WORKSPACE = "i4 f4 i2 f4 f4 ? f8 f8 f8 i8 f8 i8"  # types of a place to work in; its results are `FOUND`: number, score, parts of each
HELD, UNIT_DOC, ALIVE = range(3)
INDEX = "i4 i4 ? i8 i4 i1 ? f4 i4 u1 i4"  # types of an index: these, and the same facts about all memories, in the same places
GONE = 10  # units that are not there, while they are few; of more, `ALIVE` says which are
FIRST, COUNT, VECTORS = range(3)
WHOLE = "i4 i4 f4"  # types of all vectors, while they are few: first row and number of rows of each document; the vectors
AXIS, MIDDLE, CODES, FIGURES = range(4)
MODEL = "f4 f4 i1 f8"  # arrays that questions are measured against: see `MEASURE_QUERY`
DOCUMENTS, WANTED, TIE, WORD, DEVIATION, EVIDENCE, FOREIGN, CHANCE, ASKED, SURE, DEPTH, LEAST, MARGIN = range(13)  # figures of a question
CANDIDATES = 50  # memories that hold the words of a question best, besides those of a neighbourhood


@loop("i8** i8** i8** i8** i8 i4+ ?* f4* f8 f8")
def _SCORE_NEIGHBOURHOOD(buffer, place, index, segments, documents, wanted, passing, unit, mean, spread):  # type: ignore[no-untyped-def]
    "Score a neighbourhood by words and meaning; returns known terms, touched units, the highest sum elsewhere, and that of all terms."
    words, meaning, numbers = F4(buffer, WORDS), F4(buffer, MEANING), I8(buffer, NUMBERS)
    where, member = I4(buffer, WHERE), I4(buffer, MEMBER)
    touched, outside, slots, weights = I4(place, TOUCHED), F4(place, OUTSIDE), I2(place, SLOTS), F4(place, WEIGHTS)
    known, ceiling = WEIGH_TERMS(np.empty(len(wanted)), weights, wanted, I4(index, HELD), documents)
    own, read, whole = weights[:known], YES(place, READ)[:known], np.float32(ceiling) if ceiling > 0 else np.float32(1)
    low, heard = np.zeros((len(segments) // 4, known), np.int64), np.empty(len(where), np.float32)
    high = np.zeros_like(low)
    FIND_POSTINGS(low, high, read, wanted[:known], segments, len(touched))
    n, bits = SUM_POSTINGS(touched, outside, slots, segments, low, high, read, own)
    gone, docs = I4(index, GONE), I4(index, UNIT_DOC)
    most = TAKE_OUT_SCORES(heard, outside, slots, bits, where, gone, touched[:n], docs, YES(index, ALIVE), passing)
    unread = ADD_UNREAD(heard, where, segments, low, high, read, own)
    words[:] = 0
    meaning[:] = 0
    for u in range(len(where)):
        words[member[u]] = max(words[member[u]], heard[u] / whole)
    COMPARE_VECTORS(meaning, F44(buffer, ROWS), I4(buffer, OWNER), unit, mean, spread)
    for j in range(len(words) if len(passing) else 0):
        if numbers[j] >= len(passing) or not passing[numbers[j]]:
            words[j] = meaning[j] = 0
    return known, n, most + unread, ceiling


@loop("i8** i8** ?* i4* f8* i8")
def _RANK_BUFFER(buffer, place, dated, named, told, n):  # type: ignore[no-untyped-def]
    "Rank the first `n` memories of a buffer into `FOUND`: numbers, scores, parts; returns how many, ties with the last included."
    words, meaning, seqs = F4(buffer, WORDS)[:n], F4(buffer, MEANING)[:n], I8(buffer, SEQ)
    where, total, order, k = I8(place, PICKED)[:n], F8(place, TOTAL)[:n], I8(place, ORDER)[:n], min(int(told[DEPTH]), n)
    found, added = F88(place, FOUND), F88(place, ADDED)
    m = RANK(where, total, added, F4(place, BEST), k, told[TIE], order, order, words, meaning,
             I4(buffer, SESSION), told[WORD], told[DEVIATION], told[EVIDENCE], I1(buffer, SCRIPT), int(told[FOREIGN]), told[CHANCE],
             YES(buffer, USER), F4(buffer, LENGTH), I4(buffer, SPEAKER), named, dated[:0], 1.0, dated, U1(buffer, TYPES),
             int(told[ASKED]), F8(place, WORTH))
    for j in range(m):
        found[j, 0], found[j, 1] = seqs[where[j]], total[where[j]]
        for part in range(added.shape[1]):
            found[j, 2 + part] = added[j, part]
    return m


# The best elsewhere: of thousands of scores some dozens are wanted, and the next one, to know what was left. A sample gives a threshold
# that most scores do not reach, so that one comparison passes them over; where the sample was wrong, all scores are compared again.
SAMPLED = 16  # scores of which one is looked at


@loop("f4* i8")
def SAMPLE_THRESHOLD(outside, wanted):  # type: ignore[no-untyped-def]
    "Return a score that more than the wanted number are likely to exceed, from a sample of one in sixteen."
    best = np.zeros(2 * wanted // SAMPLED + 1, np.float32)
    for i in range(0, len(outside), SAMPLED):
        at = len(best) - 1
        if outside[i] > best[at]:
            while at > 0 and best[at - 1] < outside[i]:
                best[at] = best[at - 1]
                at -= 1
            best[at] = outside[i]
    return best[len(best) - 1]


@loop("i4+ f4+ i4* f4* f4")
def _TOP_ABOVE(units, scores, touched, outside, least):  # type: ignore[no-untyped-def]
    "Fill a heap with the units of the highest scores above `least`, the lowest in front; returns how many."
    n, room = 0, len(units)
    for i in range(len(outside)):
        worth, at = outside[i], 0
        if worth > least and n < room:
            at, n = n, n + 1
            while at > 0 and scores[(at - 1) // 2] > worth:
                units[at], scores[at] = units[(at - 1) // 2], scores[(at - 1) // 2]
                at = (at - 1) // 2
            units[at], scores[at] = touched[i], worth
        elif worth > least and worth > scores[0]:
            while 2 * at + 1 < n:
                below = 2 * at + 1
                if below + 1 < n and scores[below + 1] < scores[below]:
                    below += 1
                if scores[below] >= worth:
                    break
                units[at], scores[at], at = units[below], scores[below], below
            units[at], scores[at] = touched[i], worth
    return n


@loop("i4+ f4+ i4* f4*")
def TOP_UNITS(units, scores, touched, outside):  # type: ignore[no-untyped-def]
    "Fill a heap with the units of the highest scores above 0, the lowest in front; returns how many."
    n = _TOP_ABOVE(units, scores, touched, outside, SAMPLE_THRESHOLD(outside, len(units)))
    return n if n == len(units) else _TOP_ABOVE(units, scores, touched, outside, np.float32(0))


@loop("i4+ f4+")
def SORT_BY_UNIT(units, scores):  # type: ignore[no-untyped-def]
    "Sort units with their scores by unit."
    for j in range(1, len(units)):
        u, score, at = units[j], scores[j], j
        while at > 0 and units[at - 1] > u:
            units[at], scores[at] = units[at - 1], scores[at - 1]
            at -= 1
        units[at], scores[at] = u, score


@loop("i8** i8** i8 i8")
def _FETCH_COLUMNS(buffer, index, n, end):  # type: ignore[no-untyped-def]
    "Copy the columns of the memories from position `n` on into a buffer."
    numbers = I8(buffer, NUMBERS)[n:end]
    seq, session, script, user = I8(buffer, SEQ), I4(buffer, SESSION), I1(buffer, SCRIPT), YES(buffer, USER)
    seqs, sessions, scripts, users = I8(index, SEQ), I4(index, SESSION), I1(index, SCRIPT), YES(index, USER)
    length, speaker, types = F4(buffer, LENGTH), I4(buffer, SPEAKER), U1(buffer, TYPES)
    lengths, speakers, masks = F4(index, LENGTH), I4(index, SPEAKER), U1(index, TYPES)
    for j in range(end - n):
        seq[n + j], session[n + j], script[n + j] = seqs[numbers[j]], sessions[numbers[j]], scripts[numbers[j]]
    for j in range(end - n):
        user[n + j], length[n + j] = users[numbers[j]], lengths[numbers[j]]
        speaker[n + j], types[n + j] = speakers[numbers[j]], masks[numbers[j]]


@loop("i8** i8** i8** i8** i4* i8 i8 i8 f8")
def _ADD_CANDIDATES(buffer, place, index, segments, wanted, n, most, touched, ceiling):  # type: ignore[no-untyped-def]
    "Add the memories of the best units elsewhere behind the first `n`; returns how many there are then, and the highest sum left."
    words, numbers, unit_doc = F4(buffer, WORDS), I8(buffer, NUMBERS), I4(index, UNIT_DOC)
    weights, read = F4(place, WEIGHTS)[:len(wanted)], YES(place, READ)[:len(wanted)]
    units, scores, left, unread, end = np.empty(most + 1, np.int32), np.empty(most + 1, np.float32), np.float32(0), 0.0, n
    found = TOP_UNITS(units, scores, I4(place, TOUCHED)[:touched], F4(place, OUTSIDE)[:touched])
    if found > most:
        found, left, units[0], scores[0] = most, scores[0], units[most], scores[most]
    SORT_BY_UNIT(units[:found], scores[:found])
    if not read.all():
        low, high = np.zeros((len(segments) // 4, len(wanted)), np.int64), np.zeros((len(segments) // 4, len(wanted)), np.int64)
        FIND_POSTINGS(low, high, read, wanted, segments, len(I4(place, TOUCHED)))
        unread = ADD_UNREAD(scores[:found], units[:found], segments, low, high, read, weights)
    whole = np.float32(ceiling) if ceiling > 0 else np.float32(1)
    for j in range(found):
        number, worth = unit_doc[units[j]], scores[j] / whole
        if end > n and numbers[end - 1] == number:  # another unit of a long text
            words[end - 1] = max(words[end - 1], worth)
        else:
            numbers[end], words[end] = number, worth
            end += 1
    _FETCH_COLUMNS(buffer, index, n, end)
    return end, left + unread


@loop("i8** i8** i8** i8** i8** i4* i8 i8 f8 f4* f8 f8 i4* f8*")
def _RANK_WITH_CANDIDATES(buffer, place, index, segments, vectors, wanted, n, touched, ceiling, unit, mean, spread, named, told):  # type: ignore[no-untyped-def]
    "Add candidates, compare their vectors, and rank all; returns how many there are, the highest sum left, and how many are the best."
    end, left = _ADD_CANDIDATES(buffer, place, index, segments, wanted, n, CANDIDATES, touched, ceiling)
    new, seqs = F4(buffer, MEANING)[n:end], I8(buffer, SEQ)[n:end]
    if len(vectors) > 3:  # their codes
        CODED_Z_SCORES(new, seqs, vectors, unit, mean, spread)
    else:
        Z_SCORES(new, I8(buffer, NUMBERS)[n:end], I4(vectors, FIRST), I4(vectors, COUNT), F44(vectors, VECTORS), unit, mean, spread)
    return end, left, _RANK_BUFFER(buffer, place, np.empty(0, np.bool_), named, told, end)


# All at once: the question is measured, the nearest slot found, its neighbourhood ranked and, where that is not conclusive, widened.
AROUND, SUBJECTS, TAIL_BOUNDS, WORK, EVERY, PARTED, MEASURED, COMPARED = range(8)
ALL = "i8 f4 f8 i8 i8 i8 i8 i8"  # buffers, slots, a bound for each; workspace, index, segments, model, vectors


@loop("f8 f8 f8 f8*")
def _REQUIRED_SCORE(left, ceiling, tail_bound, told):  # type: ignore[no-untyped-def]
    "Return what the last of the hits that must be sure has to reach; minus infinity where every memory was scored."
    return told[MARGIN] + tail_bound + told[WORD] * (left / (ceiling if ceiling > 0 else 1.0))


@loop("i8** i8 f8 f8* i8")
def _IS_CONCLUSIVE(place, n, bar, told, sure):  # type: ignore[no-untyped-def]
    "Tell whether there are as many as are wanted among the `n` best, and the first `sure` of them reach what they must."
    if bar == -np.inf:
        return n > 0
    return n >= told[WANTED] and F88(place, FOUND)[sure - 1, 1] >= bar


@loop("i8** i8 i4+ ?* f4* f8 f8 i4* f8*")
def _SEARCH_SLOT(tables, slot, wanted, passing, unit, mean, spread, named, told):  # type: ignore[no-untyped-def]
    "Search a slot's neighbourhood; returns how many are the best, -1 without a neighbourhood, the steps taken, and whether they stand."
    place, index, segments, vectors = I88(tables, WORK), I88(tables, EVERY), I88(tables, PARTED), I88(tables, COMPARED)
    bounds, buffers = F8(tables, TAIL_BOUNDS), I88(tables, AROUND)
    width, every, sure = 2 * buffers.shape[0] // len(bounds), int(told[WANTED]), int(told[SURE])
    buffer = buffers[slot * width:(slot + 1) * width]
    size = len(I8(buffer, NUMBERS)) - CANDIDATES
    if size < 0:
        return -1, 0, False
    heard = _SCORE_NEIGHBOURHOOD(buffer, place, index, segments, int(told[DOCUMENTS]), wanted, passing, unit, mean, spread)
    known, touched, left, ceiling = heard
    bar = _REQUIRED_SCORE(left, ceiling, bounds[2 * slot], told)
    n = _RANK_BUFFER(buffer, place, np.empty(0, np.bool_), named, told, size)
    if _IS_CONCLUSIVE(place, n, bar, told, every) or not len(vectors):
        return n, 1, _IS_CONCLUSIVE(place, n, bar, told, every)
    own = wanted[:known]
    _, left, n = _RANK_WITH_CANDIDATES(buffer, place, index, segments, vectors, own, size, touched, ceiling, unit, mean, spread,
                                       named, told)
    return n, 2, _IS_CONCLUSIVE(place, n, _REQUIRED_SCORE(left, ceiling, max(bounds[2 * slot + 1], 0.0), told), told, sure)


@loop("i8** i4+ ?* f4* f4++ i4* f8*")
def RECALL(tables, wanted, passing, vector, measured, named, told):  # type: ignore[no-untyped-def]
    "Answer a question; returns its slot, -1 for none, the mean and spread of its cosines, and what `_SEARCH_SLOT` returns."
    model, level, unit = I88(tables, MEASURED), measured[0], measured[1]
    figures = F8(model, FIGURES)
    mean, spread = MEASURE_QUERY(level, unit, vector, F4(model, AXIS), F4(model, MIDDLE), I11(model, CODES), figures[0], figures[1])
    slot, cosine = NEAREST_VECTOR(F44(tables, SUBJECTS), unit)
    if (cosine - mean) / spread < told[LEAST]:
        return -1, mean, spread, -1, 0, False
    n, looks, stands = _SEARCH_SLOT(tables, slot, wanted, passing, unit, mean, spread, named, told)
    return slot, mean, spread, n, looks, stands
