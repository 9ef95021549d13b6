"""Months, days of the week, seasons and the days around today, in English and Korean: each word once."""

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
KOREAN_WEEKDAYS = "월화수목금토일"  # first syllables, from Monday; 요일 follows each, in chats 욜
MONTH = "|".join(MONTHS)  # pattern of a month's name; a group around it is the reader's
WEEKDAY = f"(?:{'|'.join(day.removesuffix('day') for day in WEEKDAYS)})day"  # pattern of a day's name; an *s* may follow
KOREAN_WEEKDAY = f"[{KOREAN_WEEKDAYS}](?:요일|욜)"  # pattern of a day's name
SEASON = "spring|summer|autumn|winter"  # pattern; *fall* is mostly a verb
DAYS_NEAR = ("yesterday", "today", "tomorrow", "tonight")  # days told from today
KOREAN_DAYS_PAST = "어제|그제"  # pattern of the days before today
KOREAN_DAYS_AHEAD = "내일|모레"  # pattern of the days after it


def month_number(name: str,  # name of a month in small letters, or the first letters of one: `jan`
                 ) -> int:   # 1 to 12
    "Return the number of the first month whose name begins so. Raises `StopIteration` where none does."
    return next(n for n, month in enumerate(MONTHS, 1) if month.startswith(name))
