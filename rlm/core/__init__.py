"""What every layer stands on: settings, clock, ids, errors, text."""
