"""Rules: what to do when, how they earn their place, and how their conflicts are resolved."""

from rlm.rules.audit import AuditReport, audit
from rlm.rules.conflicts import ConflictLog, Dispute
from rlm.rules.model import Rule
from rlm.rules.parser import FormalError, parse
from rlm.rules.resolution import AntinomicLoop, BaseGeneration, ConflictResolver, Resolution
from rlm.rules.rule_store import RuleStore

Antinomy = AntinomicLoop  # its earlier name

__all__ = ["AntinomicLoop", "Antinomy", "AuditReport", "BaseGeneration", "ConflictLog", "ConflictResolver", "Dispute",
           "FormalError", "Resolution", "Rule",
           "RuleStore", "audit", "parse"]
