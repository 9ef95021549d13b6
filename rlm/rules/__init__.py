"""Rules: what to do when, how they earn their place, and how their conflicts are resolved."""

from rlm.rules.audit import AuditReport, audit
from rlm.rules.conflicts import ConflictResolver, Resolution
from rlm.rules.fallbacks import Antinomy, BaseGeneration
from rlm.rules.parsing import FormalError, parse
from rlm.rules.rule import Rule
from rlm.rules.rule_transfer import RuleStore

__all__ = ["Antinomy", "AuditReport", "BaseGeneration", "ConflictResolver", "FormalError", "Resolution", "Rule", "RuleStore", "audit",
           "parse"]
